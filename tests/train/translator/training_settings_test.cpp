#include "multihead/train/translator/training_settings.h"

#include <gmock/gmock.h>

#include <fstream>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"
#include "multihead/train/translator/train_translator.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
namespace fs = std::filesystem;

TEST(KeptSettings, AreThoseThatWereGivenWithAbsolutePaths) {
  const test::ScratchFolder folder;
  EXPECT_FALSE(kept_settings(folder.path() / "run").has_value());
  EXPECT_FALSE(kept_settings("").has_value());
  fs::create_directories(folder.path() / "run/checkpoints");
  TranslatorSettings settings;
  settings.model = (folder.path() / "run").string();
  settings.train_source = "text/train.en";
  settings.train_target = "/text/train.de";
  settings.d_ff = 37;
  settings.positions = Positions::kRotary;
  settings.head_changes = HeadChanges::of_json(R"({"d_key": 5})", "heads");
  settings.seed = 18446744073709551615u;
  settings.updates = 11;
  keep_settings(settings);

  fs::rename(folder.path() / "run", folder.path() / "moved");
  TranslatorSettings expected = settings;
  expected.model = (folder.path() / "moved").string();
  expected.train_source = (fs::current_path() / "text/train.en").string();
  EXPECT_EQ(to_json(*kept_settings(folder.path() / "moved")), to_json(expected));

  std::ofstream(folder.path() / "moved/checkpoints/settings.json") << "{\"dropout\": 7}";
  EXPECT_THAT([&] { kept_settings(folder.path() / "moved"); },
              ThrowsMessage<FormatError>(HasSubstr("remove it and give all settings of the run again")));
}

// As a program trains: the same result whether it stops on the way or not.
TEST(KeptSettings, AProgramGoesOnWithThem) {
  const test::ScratchFolder folder;
  std::ofstream source(folder.path() / "a.en"), target(folder.path() / "a.de");
  for (int i = 0; i < 30; ++i) {
    source << "a " << (i % 3 == 0 ? "red" : "big") << " dog" << i % 7 << "\n";
    target << "ein " << (i % 3 == 0 ? "roter" : "großer") << " Hund" << i % 7 << "\n";
  }
  source.close();
  target.close();
  TranslatorSettings settings;
  settings.train_source = (folder.path() / "a.en").string();
  settings.train_target = (folder.path() / "a.de").string();
  settings.d_model = 12;
  settings.d_ff = 20;
  settings.encoder_layers = settings.decoder_layers = 1;
  settings.heads = 3;
  settings.vocabulary_size = 40;
  settings.batch_tokens = 60;
  settings.save_every = 3;
  settings.updates = 9;
  settings.model = (folder.path() / "straight").string();
  train_translator(settings);

  settings.model = (folder.path() / "stopped").string();
  int updates = 0;
  TrainingWatcher watcher;
  watcher.progress = [&](const TrainingProgress&) { ++updates; };
  watcher.stop = [&] { return updates == 4; };
  EXPECT_THROW(train_translator(settings, watcher), Interrupted);
  const TrainingResult result = train_translator(kept_settings(settings.model).value());
  EXPECT_EQ(result.updates, 9);
  EXPECT_EQ(read_file(folder.path() / "stopped/model.safetensors"),
            read_file(folder.path() / "straight/model.safetensors"));

  TranslatorSettings other = kept_settings(settings.model).value();
  other.seed = 2;
  other.updates = 12;
  EXPECT_THAT([&] { train_translator(other); },
              ThrowsMessage<UsageError>(HasSubstr("at update 9: `seed` was 1, is now 2; leave out")));
}

}  // namespace
}  // namespace mh

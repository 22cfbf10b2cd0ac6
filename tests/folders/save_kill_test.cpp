// Real kills: a process that saves over and over is killed at random moments; the folder must always be
// whole.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "multihead/base/error.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/folders/folder_case.h"

namespace mh {
namespace {

using namespace test;

// Every number of the model is `value`: a mixture of two saves would show.
void fill_model(EncoderDecoder& model, float value) {
  model.visit([&](const std::string&, Parameter& parameter) { parameter.value.fill(value); });
}

TEST(SlowSaveKilled, LeavesTheOldFolderOrTheNew) {
  const ScratchFolder scratch;
  const Tokenizer tokenizer = small_tokenizer();
  TranslatorShape shape = folder_shape(tokenizer.size());
  shape.d_model = 60;
  shape.encoder_ff = shape.decoder_ff = 257;
  EncoderDecoder model(shape.config());
  const auto folder = scratch / "model";
  const auto save = [&](int number) {
    fill_model(model, static_cast<float>(number));
    save_model_folder(folder, model,
                      {.tokenizer = &tokenizer, .extra_files = {{"number", std::to_string(number)}}});
  };
  save(0);

  Random random(20);
  int last = 0, moved_on = 0;
  for (int round = 0; round < 60; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int number = last + 1;; ++number) save(number);
    }
    ::usleep(static_cast<useconds_t>(500 + random.below(150'000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the saving process ended by itself";

    ModelFolder loaded;
    ASSERT_NO_THROW(loaded = load_model_folder(folder)) << "round " << round;
    const int number = std::stoi(read_file(folder / "number"));
    EXPECT_GE(number, last);
    moved_on += number > last ? 1 : 0;
    last = number;
    for (const auto& values : values_of(loaded.translator())) {
      for (const float value : values) ASSERT_EQ(value, static_cast<float>(number)) << "round " << round;
    }
    ASSERT_TRUE(loaded.tokenizer.has_value());
  }
  EXPECT_GT(moved_on, 0) << "no kill came after a save; nothing was tested";
}

}  // namespace
}  // namespace mh

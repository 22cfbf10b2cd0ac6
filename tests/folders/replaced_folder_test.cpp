// A folder that holds a model is replaced only where this library wrote it, or the caller allows it.
#include "multihead/folders/replaced_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "multihead/folders/shipped_folder.h"
#include "tests/folders/folder_case.h"
#include "tests/support/edit_weights.h"
#include "tests/support/goldens.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ReplacedFolder : public testing::Test {
 protected:
  void refused(const fs::path& to, const char* words) const {
    EXPECT_THAT([&] { save_model_folder(to, bert); }, ThrowsMessage<FileError>(HasSubstr(words)));
  }
  const ModelFolder bert = load_model_folder(kGoldens / "bert/encoder");
  const test::ScratchFolder scratch;
  const fs::path folder = scratch / "folder";
};

TEST_F(ReplacedFolder, OursIsReplaced) {
  for (const SaveOptions& options : {SaveOptions{}, SaveOptions{.type = NumberType::kBFloat16},
                                     SaveOptions{.largest_file = 3000}, SaveOptions{}}) {
    EXPECT_NO_THROW(save_model_folder(folder, bert, options));
    EXPECT_TRUE(is_written_here(folder));
  }
  EXPECT_NO_THROW(save_model_folder(folder, load_model_folder(kGoldens / "gpt2/tied")));
  EXPECT_EQ(load_model_folder(folder).model_type, "gpt2");
}

TEST_F(ReplacedFolder, OfATranslatorFromBeforeItIsReplacedToo) {
  save_model_folder(folder, load_model_folder("demo"));
  test::edit_weights(folder / "model.safetensors", [](auto&) {});  // no writer is noted there
  EXPECT_TRUE(is_written_here(folder));
  // What transformers saved again has its version.
  test::edit_json(folder / "config.json", [](auto& config) { config["transformers_version"] = "5.24.0"; });
  EXPECT_FALSE(is_written_here(folder));
}

TEST_F(ReplacedFolder, AnotherModelIsKeptUnlessItMayBeLost) {
  const fs::path golden = kGoldens / "sentences/dense";
  fs::copy(golden, folder, fs::copy_options::recursive);
  EXPECT_FALSE(is_written_here(folder));
  refused(
      folder,
      "holds a model that multihead did not write; choose a new name, or allow that it is lost: `overwrite`");
  EXPECT_EQ(read_file(folder / "model.safetensors"), read_file(golden / "model.safetensors"));
  EXPECT_TRUE(fs::exists(folder / "tokenizer.json"));
  EXPECT_NO_THROW(save_model_folder(folder, bert, {.replace = Replace::kAnyModel}));
  EXPECT_FALSE(fs::exists(folder / "tokenizer.json"));
  EXPECT_TRUE(is_written_here(folder));
}

TEST_F(ReplacedFolder, WhatIsNoModelIsKeptAlways) {
  fs::create_directories(folder / "photos");
  const auto kept = [&](const char* words) {
    refused(folder, words);
    EXPECT_THROW(save_model_folder(folder, bert, {.replace = Replace::kAnyModel}), FileError);
  };
  kept("holds something else");
  write_file_atomically(folder / "config.json", "{}");
  kept("holds something else");  // beside a folder of others
  write_file_atomically(folder / "modules.json", "[]");
  fs::create_directories(folder / "photos/deep");
  kept("holds something else");
  fs::remove_all(folder);
  write_file_atomically(folder, "a file");
  kept("a file of that name exists");
  EXPECT_FALSE(is_written_here(scratch / "nowhere"));
}

TEST_F(ReplacedFolder, OneOfSentenceTransformersIsOursWithItsModules) {
  const ModelFolder sentences = load_model_folder(kGoldens / "sentences/dense");
  save_model_folder(folder, sentences);
  EXPECT_TRUE(fs::exists(folder / "1_Pooling/config.json"));
  EXPECT_NO_THROW(save_model_folder(folder, sentences));
}

}  // namespace
}  // namespace mh

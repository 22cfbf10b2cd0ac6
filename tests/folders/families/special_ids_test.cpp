// Ids of special tokens that no token has: GPT2Config(vocab_size=49152) keeps 50256 for the end of a text, and transformers opens
// the folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/models/causal_model.h"
#include "tests/folders/families/causal_goldens.h"
#include "tests/folders/families/damaged_golden.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(SpecialIds, BeyondTheVocabularyOfGpt2AreNone) {
  const test::DamagedGolden folder("gpt2", "tied");
  folder.with([](json& config) {
    for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) config[key] = 61;
  });
  write_file_atomically(folder.folder / "generation_config.json",
                        R"({"bos_token_id": 50256, "eos_token_id": [50256, 3]})");
  const ModelFolder found = load_model_folder(folder.folder);
  EXPECT_EQ(found.model->facts().eos_id, -1);
  EXPECT_EQ(found.model->facts().start_id, -1);
  EXPECT_EQ(found.model->facts().pad_id, -1);
  EXPECT_THAT(found.generation.end_tokens, testing::ElementsAre(3));
  EXPECT_EQ(found.remark(),
            (folder.folder / "config.json").string() +
                ": bos_token_id 61, eos_token_id 61 and pad_token_id 61 are beyond the vocabulary of 61 "
                "tokens and were not used");
  test::expect_states_and_logits(found.language_model(), test::GoldenModel("gpt2", "tied"));
  // GPT2Config's own ids count where the file says none.
  folder.with([](json& config) {
    for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) config.erase(key);
  });
  EXPECT_THAT(load_model_folder(folder.folder).remark(), HasSubstr("eos_token_id 50256"));
  folder.with([](json& config) { config["eos_token_id"] = {60, 3}; });
  EXPECT_EQ(load_model_folder(folder.folder).model->facts().eos_id, 60);
}

TEST(SpecialIds, BeyondTheVocabularyOfLlamaAreNone) {
  const test::DamagedGolden folder("llama", "tied_grouped");
  folder.with([](json& config) { config["eos_token_id"] = {37, 2}; });
  const ModelFolder found = load_model_folder(folder.folder);
  EXPECT_EQ(found.model->facts().eos_id, -1);
  EXPECT_THAT(found.remark(),
              HasSubstr(": eos_token_id 37 is beyond the vocabulary of 37 tokens and was not used"));
}

}  // namespace
}  // namespace mh

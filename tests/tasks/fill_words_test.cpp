// Masked words: what transformers' fill-mask says with the same small models.
#include "multihead/tasks/fill_words.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/heads/sites/site_values.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class FillWords : public testing::TestWithParam<const char*> {
 protected:
  ModelFolder folder = load_model_folder(kGoldens / "fill" / GetParam());
  nlohmann::json golden = nlohmann::json::parse(read_file(kGoldens / "fill" / "expected.json"))[GetParam()];
};

TEST_P(FillWords, AreThoseOfTransformers) {
  std::vector<std::string> texts;
  for (const auto& one : golden) texts.push_back(one["text"]);
  for (const int64_t batch : {1, 4096}) {
    const auto found = fill_words(folder, texts, {.words = 7, .max_batch_tokens = batch});
    ASSERT_EQ(found.size(), golden.size());
    for (size_t t = 0; t < found.size(); ++t) {
      SCOPED_TRACE(texts[t]);
      const auto& masks = golden[t]["masks"];
      ASSERT_EQ(found[t].size(), masks.size());
      for (size_t m = 0; m < masks.size(); ++m) {
        ASSERT_EQ(found[t][m].size(), 7u);
        for (size_t k = 0; k < 7; ++k) {
          EXPECT_EQ(found[t][m][k].token, masks[m][k]["token"]);
          EXPECT_EQ(found[t][m][k].word, masks[m][k]["word"]);
          EXPECT_NEAR(found[t][m][k].probability, masks[m][k]["score"].get<double>(), 1e-5);
        }
      }
    }
  }
}

TEST_P(FillWords, MutedHeadsMatterAndBadTextsAreNamed) {
  const std::string mask = mask_token(folder);
  SiteValues muted;
  muted.mute("encoder.0.self_attention.1");
  EXPECT_NE(fill_words(folder, {mask}, {.sites = &muted})[0][0][0].probability,
            fill_words(folder, {mask})[0][0][0].probability);
  const auto expect_refused = [&](const std::vector<std::string>& texts, const FillOptions& options,
                                  const std::string& what) {
    EXPECT_THAT([&] { fill_words(folder, texts, options); }, ThrowsMessage<Error>(HasSubstr(what)));
  };
  expect_refused({mask, "The sky."}, {}, "text 2 has no mask; write " + mask);
  expect_refused({mask}, {.words = 0}, "`words`: expected an integer from 1 to ");
  expect_refused({mask}, {.words = 1000}, "`words`: expected an integer from 1 to ");
  EXPECT_TRUE(fill_words(folder, {}).empty());
}

TEST_P(FillWords, HaveLogitsThatMayBeSeenAndReplaced) {
  const std::string mask = mask_token(folder);
  const std::vector<std::string> texts{"The " + mask + " sky .", mask + " . " + mask};
  const auto expected = fill_words(folder, texts, {.words = 3});
  SiteValues values;
  values.keep("encoder.*");
  const auto found = fill_words(folder, texts, {.words = 3, .sites = &values});
  for (size_t t = 0; t < texts.size(); ++t) {
    for (size_t m = 0; m < found[t].size(); ++m) {
      for (size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(found[t][m][k].token, expected[t][m][k].token);
        EXPECT_NEAR(found[t][m][k].probability, expected[t][m][k].probability, 1e-6);
      }
    }
  }
  // The rows of masks alone.
  const KeptValue kept = values.kept("encoder.logits");
  EXPECT_EQ(kept.value.rows(), 3);
  EXPECT_EQ(kept.positions.size(), 3u);
  Tensor numbers(1, kept.value.cols());
  numbers(0, 17) = 50;
  SiteValues put;
  put.replace({.site = "encoder.logits", .position = kept.positions[2], .numbers = std::move(numbers)});
  const auto changed = fill_words(folder, texts, {.sites = &put});
  int decided = 0;
  for (const auto& text : changed) {
    for (const auto& words : text) decided += words[0].token == 17 ? 1 : 0;
  }
  EXPECT_GE(decided, 1);
}

TEST_P(FillWords, LongTextsLoseTheirEndOrAreRefused) {
  const std::string mask = mask_token(folder);
  const auto longest = static_cast<size_t>(folder.model->facts().max_positions);
  std::string exact = mask;
  while (folder.tokenizer->encode_ids(exact).size() < longest) exact += " .";
  const std::string long_text = exact + " . .";
  std::vector<std::string> remarks;
  const auto remark = [&](const std::string& line) { remarks.push_back(line); };
  const auto found = fill_words(folder, {exact, long_text}, {.remark = remark});
  EXPECT_EQ(found[1][0][0].probability, found[0][0][0].probability);
  const size_t tokens = folder.tokenizer->encode_ids(long_text).size();
  EXPECT_THAT(remarks,
              testing::ElementsAre(fmt::format(
                  "1 of 2 texts cut to the {} tokens that the model reads, at its end; text 2 has {} tokens",
                  longest, tokens)));
  EXPECT_THAT(
      [&] {
        fill_words(folder, {exact, long_text}, {.from = {.name = "FILE"}, .strict = true});
      },
      ThrowsMessage<FormatError>(HasSubstr(fmt::format("FILE line 2 has {} tokens", tokens))));
  // Words for a mask that is not read would be words for another.
  EXPECT_THAT([&] { fill_words(folder, {long_text + " " + mask}); },
              ThrowsMessage<FormatError>(HasSubstr("a mask stands behind the ")));
}

TEST_P(FillWords, TheMaskIsWhatTheFolderSays) {
  const std::string mask = mask_token(folder);
  folder.mask_token.clear();
  EXPECT_EQ(mask_token(folder), mask);  // one of the usual two
  folder.mask_token = "the";
  EXPECT_EQ(mask_token(folder), folder.tokenizer->id_of("the") ? "the" : mask);
}

INSTANTIATE_TEST_SUITE_P(Folders, FillWords, testing::Values("bert", "roberta"));

TEST(FillWordsOfOtherModels, SayWhatTheyAre) {
  for (const auto& [name, what] : {std::pair{"bert/encoder", "without a head for masked words"},
                                   {"gpt2/tied", "holds a gpt2 model, which predicts no masked words"},
                                   {"marian/relu", "holds a marian model"}}) {
    const ModelFolder other = load_model_folder(kGoldens / name);
    EXPECT_THAT([&] { fill_words(other, {"a"}); }, ThrowsMessage<UsageError>(HasSubstr(what)));
  }
  const ModelFolder ids = load_model_folder(kGoldens / "bert/masked");
  EXPECT_THAT([&] { fill_words(ids, {"a"}); }, ThrowsMessage<FileError>(HasSubstr("no tokenizer.json")));
}

}  // namespace
}  // namespace mh

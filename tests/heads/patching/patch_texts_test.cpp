// What activation patching reads and refuses, and its JSON.
#include "multihead/heads/patching/heads_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/reports/patch_json.h"
#include "tests/heads/patching/patch_families.h"
#include "tests/heads/reports/json_page.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(PatchTexts, StrongestComeFirstUpOrDown) {
  PatchReport patching;
  for (const double restored : {0.1, -0.7, 0.5, 0.0, -0.1}) {
    patching.values.emplace_back();
    patching.values.back().restored = restored;
  }
  std::vector<double> found;
  for (const PatchedValue* value : patching.strongest(4)) found.push_back(value->restored);
  EXPECT_EQ(found, (std::vector<double>{-0.7, 0.5, 0.1, -0.1}));
  EXPECT_EQ(patching.strongest(99).size(), 5u);
}

PatchQuestion with(PatchQuestion question, std::string PatchQuestion::*field, const std::string& text) {
  question.*field = text;
  return question;
}

void expect_refused(const ModelFolder& folder, const PatchQuestion& question, const std::string& why) {
  EXPECT_THAT([&] { heads_patch(folder, question); }, ThrowsMessage<Error>(HasSubstr(why)));
}

TEST(PatchTexts, RefusesWhatItCannotCompare) {
  const ModelFolder causal = causal_folder(), bert = bert_folder(), translator = translator_folder();
  using Q = PatchQuestion;
  expect_refused(causal, with(kContinued, &Q::corrupt, "two cats run the park"),
                 "the clean text has 4 tokens and the corrupt one 5; ");
  expect_refused(causal, with(kContinued, &Q::corrupt, kContinued.clean), "too small to say how much");
  expect_refused(causal, with(kContinued, &Q::answer, ""), "`answer`: '' has no tokens");
  expect_refused(causal, with(kContinued, &Q::wrong, " "), "`wrong`: ' ' has no tokens");
  expect_refused(causal, with(kContinued, &Q::wrong, "horse"),
                 "`wrong`: the tokenizer does not know 'horse'");
  expect_refused(causal, with(kContinued, &Q::wrong, "park run"), "both begin with the token park");
  expect_refused(causal, with(kContinued, &Q::prefix, "park"), "`prefix`: this model translates nothing");
  expect_refused(causal, with(with(kContinued, &Q::clean, ""), &Q::corrupt, ""), "the text has no tokens");
  expect_refused(causal,
                 with(kContinued, &Q::clean, "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a"),
                 "; shorten it");
  std::string long_prefix;
  for (int i = 0; i < 99; ++i) long_prefix += " park";
  EXPECT_THAT([&] { heads_patch(translator, with(kTranslated, &Q::prefix, long_prefix)); },
              ThrowsMessage<Error>(testing::AllOf(HasSubstr("prefix 1 has 100 tokens, but the model reads"),
                                                  testing::EndsWith("; shorten it"))));
  expect_refused(bert, with(kMasked, &Q::clean, "two dogs see the park"),
                 "the clean text has 0 masks; write [MASK] once");
  expect_refused(bert, with(kMasked, &Q::corrupt, "a [MASK] [MASK] the park"),
                 "the corrupt text has 2 masks");
  expect_refused(bert, with(kMasked, &Q::corrupt, "a small the [MASK] park"), "put it at the same place");
  expect_refused(translator, with(kTranslated, &Q::clean, "two"),
                 "the clean text has 2 tokens and the corrupt one 5");
  EXPECT_THAT([&] { heads_patch(causal, kContinued, {.max_batch_tokens = 0}); },
              ThrowsMessage<UsageError>(HasSubstr("`max_batch_tokens`")));
}

TEST(PatchTexts, AnAnswerOfSeveralTokensCountsByItsFirst) {
  const ModelFolder folder = causal_folder();
  std::vector<std::string> remarks;
  const PatchReport patching =
      heads_patch(folder, with(kContinued, &PatchQuestion::answer, "park run"),
                  {.remark = [&](const std::string& line) { remarks.push_back(line); }});
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0], "'park run' has 2 tokens; the first, park, is what counts");
  EXPECT_EQ(patching.texts.answer.tokens, 2);
  EXPECT_EQ(patching.clean.score(), heads_patch(folder, kContinued).clean.score());
}

TEST(PatchTexts, AWordHasTheTokenThatItHasBehindTheText) {
  const ModelFolder gpt2 = load_model_folder(std::filesystem::path(goldens_folder()) / "generate/gpt2");
  const Tokenizer& tokenizer = gpt2.source_tokens();
  const auto answer_behind = [&](const std::string& clean) {
    return read_patch_texts(gpt2, {.clean = clean, .corrupt = clean, .answer = "the", .wrong = "."}, {},
                            nullptr)
        .answer.token;
  };
  const int32_t alone = tokenizer.encode_ids("the", false)[0],
                spaced = tokenizer.encode_ids("a the", false)[tokenizer.encode_ids("a", false).size()];
  ASSERT_NE(alone, spaced);
  EXPECT_EQ(answer_behind("two dogs"), spaced);
  EXPECT_EQ(answer_behind("two dogs ("), alone);
}
TEST(PatchTexts, JsonHasTheFieldsThatThePageDescribes) {
  const ModelFolder folder = translator_folder();
  const PatchReport patching = heads_patch(folder, kTranslated, {.by_position = true});
  const auto json = nlohmann::json::parse(patch_json(patching, "small"));
  EXPECT_EQ(json["model"], "small");
  EXPECT_EQ(json["what"], "heads");
  ASSERT_EQ(json["values"].size(), patching.values.size());
  EXPECT_EQ(json["values"][7]["name"], patching.values[7].name);
  EXPECT_EQ(json["values"][7]["position"], 2);
  EXPECT_EQ(json["values"][7]["restored"].get<double>(), patching.values[7].restored);
  EXPECT_EQ(json["clean"]["tokens"].size(), 5u);
  std::set<std::string> keys;
  collect_keys(json, keys);
  const std::set<std::string> described = names_on_the_page("The JSON of heads patch");
  for (const std::string& key : keys) EXPECT_THAT(described, testing::Contains(key));
  for (const std::string& name : described) {
    if (name.find_first_of(" -./():|_") == std::string::npos && name != "heads" && name != "patterns" &&
        name != "stream" && name != "cosine" && name != "logit") {
      EXPECT_THAT(keys, testing::Contains(name));
    }
  }
}

}  // namespace
}  // namespace mh

// Deletion and insertion curves beside passes over texts with replaced tokens, one by one.
#include "multihead/heads/attribution/faithfulness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/attribution/explained_text.h"
#include "multihead/heads/reports/attribution_json.h"
#include "tests/heads/attribution/attribution_families.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

double one_score(const ExplainedText& text, const std::vector<int32_t>& ids) {
  const std::vector<std::vector<int32_t>> one = {ids};
  return text.scores(one, 2048)[0];
}

TEST(FaithfulnessAreas, AreThoseUnderTheCurvesOfReplacedTokens) {
  const ModelFolder folder = test::attribution_llama();
  const ExplainedText text(folder, "two dogs see the park", {.target_token = "cat"});
  std::vector<size_t> open;  // tokens that may be replaced
  for (size_t i = 0; i < text.tokens().size(); ++i)
    if (!text.tokens()[i].kept) open.push_back(i);
  std::vector<double> scores(text.tokens().size());  // the last token counts most
  std::iota(scores.begin(), scores.end(), 0.0);
  const auto n = static_cast<double>(open.size());
  std::vector<double> deleted, inserted;
  for (size_t k = 0; k <= open.size(); ++k) {
    const size_t first = open.size() - k;  // the k last are replaced, or are back
    deleted.push_back(
        one_score(text, text.replaced([&](size_t i) { return first < open.size() && i >= open[first]; })));
    inserted.push_back(
        one_score(text, text.replaced([&](size_t i) { return first >= open.size() || i < open[first]; })));
  }
  EXPECT_NEAR(deleted.front(), inserted.back(), 1e-5);
  EXPECT_NEAR(deleted.back(), inserted.front(), 1e-5);
  double deletion = 0, insertion = 0;
  for (size_t k = 0; k < open.size(); ++k) {
    deletion += (deleted[k] + deleted[k + 1]) / 2 / n;
    insertion += (inserted[k] + inserted[k + 1]) / 2 / n;
  }
  const FaithfulnessAreas found = faithfulness_areas(text, scores, 100, 2048);
  EXPECT_NEAR(found.deletion, deletion, 1e-5);
  EXPECT_NEAR(found.insertion, insertion, 1e-5);
  const FaithfulnessAreas ends = faithfulness_areas(text, scores, 1, 2048);
  EXPECT_NEAR(ends.deletion, (deleted.front() + deleted.back()) / 2, 1e-5) << "one step has no way between";
  EXPECT_NEAR(ends.insertion, ends.deletion, 1e-5);
}

TEST(Faithfulness, KeepsSpecialTokensAndTheTokenThatIsAskedFor) {
  ModelFolder folder = test::attribution_encoder();
  folder.mask_token = "<unk>";
  const ExplainedText text(folder, "two dogs see the park", {.position = 1});
  const std::vector<int32_t> all = text.all_replaced();
  for (size_t i = 0; i < all.size(); ++i) {
    const bool special = text.tokens()[i].characters == std::pair(0, 0);
    EXPECT_EQ(all[i] == text.ids()[i], special || i == 1) << i;
  }
}

const HeadsText& faithful_lines() {
  static const HeadsText lines{.sources = {"two dogs see the park", "", "a cat sees two small dogs",
                                           "the park", "two cats run in the park and see dogs"}};
  return lines;
}

TEST(Faithfulness, HasMeansAndIntervalsOfSentences) {
  const ModelFolder folder = test::attribution_llama();
  TextCorpus corpus(faithful_lines());
  const FaithfulnessOptions options{
      .attribution = {.methods = {AttributionMethod::kRollout, AttributionMethod::kIntegratedGradients}},
      .draws = 3};
  const Faithfulness found = faithfulness(folder, corpus, options);
  ASSERT_EQ(found.methods.size(), 3u);
  EXPECT_EQ(found.methods[0].method, AttributionMethod::kRollout);
  EXPECT_EQ(found.methods[1].method, AttributionMethod::kIntegratedGradients);
  EXPECT_FALSE(found.methods[2].method) << "random is last";
  EXPECT_GE(found.sentences, 3);
  EXPECT_EQ(found.sentences + found.left_out, 4) << "a line without text is not counted";
  std::vector<double> deletions;
  for (const std::string& line : faithful_lines().sources) {
    if (line.empty()) continue;
    const ExplainedText text(folder, line, {});
    int64_t replaceable = 0;
    for (const ReadToken& token : text.tokens()) replaceable += token.kept ? 0 : 1;
    if (replaceable < 2) continue;
    const AttributionReport one = heads_attribution(folder, line, options.attribution);
    deletions.push_back(faithfulness_areas(text, one.of(AttributionMethod::kRollout), 20, 2048).deletion);
  }
  const Interval expected = interval_of(deletions);
  EXPECT_NEAR(found.methods[0].deletion.mean, expected.mean, 1e-6);
  EXPECT_NEAR(found.methods[0].deletion.half, expected.half, 1e-6);
  for (const MethodFaithfulness& one : found.methods) {
    EXPECT_NEAR(one.deletion_gain.mean, found.methods[2].deletion.mean - one.deletion.mean, 1e-12);
    EXPECT_NEAR(one.insertion_gain.mean, one.insertion.mean - found.methods[2].insertion.mean, 1e-12);
  }
  EXPECT_EQ(found.methods[2].deletion_gain.half, 0) << "random beside itself";

  const auto json = nlohmann::json::parse(faithfulness_json(found, "model"));
  EXPECT_EQ(json["sentences"], found.sentences);
  EXPECT_EQ(json["methods"][2]["method"], "random");
  EXPECT_EQ(json["methods"][0]["deletion"]["mean"], found.methods[0].deletion.mean);
  EXPECT_FALSE(json["methods"][2].contains("deletion_gain"));
}

TEST(Faithfulness, IsTheSameAgainWithASeedAndAnotherWithAnother) {
  const ModelFolder folder = test::attribution_encoder();
  const auto random_with = [&](uint64_t seed) {
    TextCorpus corpus(faithful_lines());
    return faithfulness(folder, corpus,
                        {.attribution = {.methods = {AttributionMethod::kAttention}}, .seed = seed})
        .methods.back()
        .deletion.mean;
  };
  EXPECT_EQ(random_with(3), random_with(3));
  EXPECT_NE(random_with(3), random_with(4));
}

TEST(Faithfulness, OfATranslatorAndOfPairsReadsBothSides) {
  HeadsText lines{.sources = {"two dogs see the park", "a cat sees two small dogs"},
                  .targets = {"a cat sees the park", "two dogs run"}};
  const std::vector<AttributionMethod> methods = {AttributionMethod::kRelevance,
                                                  AttributionMethod::kValueZeroing};
  {
    const ModelFolder folder = test::attribution_translator();
    TextCorpus corpus(lines);
    const Faithfulness found = faithfulness(folder, corpus, {.attribution = {.methods = methods}});
    EXPECT_EQ(found.sentences, 2);
    EXPECT_FALSE(found.target_replacement.empty());
  }
  lines.pairs = std::move(lines.targets);
  lines.targets.clear();
  const SentenceModel model = test::attribution_sentences();
  TextCorpus corpus(lines);
  const Faithfulness found = faithfulness(model, corpus, {.attribution = {.methods = methods}});
  EXPECT_EQ(found.sentences, 2);
  for (const MethodFaithfulness& one : found.methods)
    EXPECT_LE(std::abs(one.deletion.mean), 1) << "of a cosine";
}

TEST(Faithfulness, SaysWhyNoLineCanBeExplained) {
  const ModelFolder folder = test::attribution_llama();
  const auto of = [&](const std::string& line, const FaithfulnessOptions& options) {
    const HeadsText lines{.sources = {line}};
    TextCorpus corpus(lines);
    faithfulness(folder, corpus, options);
  };
  std::string longest;
  for (int i = 0; i < 42; ++i) longest += "park ";
  EXPECT_THAT(
      [&] { of(longest, {}); },
      ThrowsMessage<UsageError>(HasSubstr("no line can be explained: it has more than the 40 tokens")));
  EXPECT_THAT([&] { of("dogs", {}); }, ThrowsMessage<UsageError>(HasSubstr("no line can be explained: ")));
  EXPECT_THAT([&] { of("two dogs", {.attribution = {.position = 1}}); },
              ThrowsMessage<UsageError>(HasSubstr("leave the token and the target out")));
  EXPECT_THAT([&] { of("two dogs", {.points = 0}); }, ThrowsMessage<UsageError>(HasSubstr("`points`")));
  EXPECT_THAT([&] { of("two dogs", {.draws = 0}); }, ThrowsMessage<UsageError>(HasSubstr("`draws`")));
  const SentenceModel sentences = test::attribution_sentences();
  TextCorpus corpus(faithful_lines());
  EXPECT_THAT([&] { faithfulness(sentences, corpus); },
              ThrowsMessage<UsageError>(HasSubstr("needs a second text for each line")));
}

}  // namespace
}  // namespace mh

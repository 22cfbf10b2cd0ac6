// What heads add to a page's texts: the question is that of attribution, and the parts add up.
#include "multihead/heads/reports/page/page_contributions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/attribution/heads_attribution.h"
#include "multihead/heads/reports/page/heads_page.h"
#include "tests/heads/attribution/attribution_families.h"
#include "tests/heads/reports/read_page.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kText = "two dogs run in the park", kSecond = "a cat sees the small dogs";

double sum_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

void expect_sums(const ContributionReport& found) {
  EXPECT_LT(found.error(), 1e-5);
  EXPECT_GT(found.magnitude, 0);
  for (const Contribution& part : found.parts) {
    if (!part.head) continue;
    EXPECT_FALSE(part.sources.empty()) << part.name;
    EXPECT_NEAR(sum_of(part.sources), part.sum, 1e-4 * found.magnitude) << part.name;
  }
}

TEST(PageContributions, AskForTheTokenThatAttributionExplains) {
  std::vector<ModelFolder> folders;
  folders.push_back(test::attribution_translator());
  folders.push_back(test::attribution_llama());
  folders.push_back(test::attribution_encoder());
  for (ModelFolder& folder : folders) {
    const PageText text{.source = kText};
    const AttributionReport explained =
        heads_attribution(folder, kText, {.methods = {AttributionMethod::kAttention}});
    const ContributionReport found = page_contribution(ScoredModel(std::move(folder)), text, "", {});
    SCOPED_TRACE(found.asked.answer->label);
    EXPECT_EQ(found.asked.answer->token, explained.explained_id);
    EXPECT_TRUE(found.centred);
    expect_sums(found);
  }
}

// Of these what is explained is the same number.
TEST(PageContributions, SumToTheLogitOfALabelThatAttributionExplains) {
  std::vector<ModelFolder> folders;
  for (const LabelRows rows : {LabelRows::kPooled, LabelRows::kTokens, LabelRows::kMean})
    folders.push_back(test::attribution_classifier(rows));
  folders.push_back(test::attribution_labelled_llama(LabelRows::kTokens));
  for (ModelFolder& folder : folders) {
    const AttributionReport explained =
        heads_attribution(folder, kText, {.methods = {AttributionMethod::kAttention}});
    const ContributionReport found = page_contribution(ScoredModel(std::move(folder)), {kText}, "", {});
    EXPECT_EQ(found.asked.answer->label, explained.label);
    EXPECT_NEAR(found.score, explained.score, 1e-4 * found.magnitude);
    expect_sums(found);
  }
}

TEST(PageContributions, SumToTheCosineThatAttributionExplains) {
  const ScoredModel model(test::attribution_sentences());
  const AttributionReport explained =
      heads_attribution(model.sentences(), kText, kSecond, {.methods = {AttributionMethod::kAttention}});
  const ContributionReport found = page_contribution(model, {kText}, kSecond, {});
  EXPECT_NEAR(found.score, explained.score, 1e-5);
  expect_sums(found);
}

TEST(PageContributions, OfACausalModelAreOfTheLastWordsTokenAfterThoseBeforeIt) {
  const ScoredModel model(test::attribution_llama());
  const std::vector<int32_t> ids = model.folder().source_tokens().encode_ids(kText);
  const int position =
      heads_attribution(model.folder(), kText, {.methods = {AttributionMethod::kAttention}}).position;
  AnswerText asked{.text = {.ids = {ids.begin(), ids.begin() + position}}, .predicting = position - 1};
  asked.answer = PatchAnswer{.text = "park", .token = ids.at(static_cast<size_t>(position))};
  const ContributionReport expected = heads_contributions(model.folder(), asked, {.centred = true}),
                           found = page_contribution(model, {kText}, "", {});
  ASSERT_EQ(found.parts.size(), expected.parts.size());
  EXPECT_NEAR(found.score, expected.score, 1e-5);
  for (size_t i = 0; i < found.parts.size(); ++i)
    EXPECT_NEAR(found.parts[i].sum, expected.parts[i].sum, 1e-5) << found.parts[i].name;
}

TEST(PageContributions, StandOnThePageInShortNumbersThatAddUp) {
  const ScoredModel model = load_scored_model("demo");
  const PageText text{"the small dog sees a cat .", "der kleine Hund sieht eine Katze ."};
  HeadsPage page({.head = "encoder.0.self_attention.0"});
  page.add_run({.name = "demo",
                .folder = &model.folder(),
                .evidence = {.stats = R"({"heads": []})"},
                .contributions = page_contributions(model, {text}, "demo", {})},
               {text});
  const json shown = read_page(page.html()).header["runs"][0]["texts"][0]["contributions"];
  const ContributionReport found = heads_contributions(
      model.folder(), {.text = text.source, .answer = "Katze", .prefix = "der kleine Hund sieht eine"},
      {.centred = true, .sources = 1000});
  EXPECT_EQ(shown["answer"]["token"], "Katze");
  EXPECT_EQ(shown["tokens"].size(), 6u);
  ASSERT_EQ(shown["parts"].size(), found.parts.size());
  const double near = 1e-3 * found.magnitude;
  double sum = 0;
  for (size_t i = 0; i < found.parts.size(); ++i) {
    const json& part = shown["parts"][i];
    const Contribution& expected = found.parts[i];
    EXPECT_EQ(part["name"], expected.name);
    EXPECT_NEAR(part["sum"].get<double>(), expected.sum, 1e-3 * std::abs(expected.sum) + 1e-5);
    EXPECT_LE(fmt::format("{:g}", part["sum"].get<double>()).size(), std::string("-1.234e-05").size());
    EXPECT_TRUE(part["positions"].is_null());
    sum += part["sum"].get<double>();
    if (!expected.head) continue;
    EXPECT_NEAR(sum_of(part["sources"].get<std::vector<double>>()), expected.sum, near);
  }
  EXPECT_NEAR(sum, shown["score"].get<double>(), near);
}

TEST(PageContributions, SayWhyThereAreNone) {
  std::string longer, longest;  // than the model reads, and than any page explains
  for (int i = 0; i < 9; ++i) longer += kText + " ";
  for (int i = 0; i < 300; ++i) longest += kText + " ";
  const ScoredModel vectors(test::attribution_sentences());
  const std::vector<std::string> found =
      page_contributions(vectors, {{kText}, {longer}, {longest}}, "model", {});
  EXPECT_THAT(json::parse(found[1])["why"].get<std::string>(), HasSubstr("the model reads 43"));
  EXPECT_THAT(json::parse(found[2])["why"].get<std::string>(),
              HasSubstr("contributions are made of at most 1024"));
  EXPECT_TRUE(page_contributions(vectors, {{kText}}, "model", {}).empty());
  EXPECT_EQ(page_contributions(vectors, {{kText}, {kSecond}}, "model", {}).size(), 2u);
}

}  // namespace
}  // namespace mh

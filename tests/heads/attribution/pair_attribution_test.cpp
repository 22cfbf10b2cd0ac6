// Attribution of two texts that a classifier reads as one sequence: gradients are those that torch computes
// (tests/oracles/pair_attribution_goldens.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/attribution/heads_attribution.h"
#include "multihead/heads/reports/attribution_json.h"
#include "multihead/tasks/classify_text.h"
#include "tests/heads/attribution/attribution_families.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::filesystem::path kLabelGoldens = std::filesystem::path(goldens_folder()) / "labels";

class PairAttribution : public testing::Test {
 protected:
  const json golden = json::parse(read_file(kLabelGoldens / "pair_attributions.json"));
  const std::string text = golden["text"], pair = golden["pair"];
};

TEST_F(PairAttribution, GradientsAreThoseOfTorch) {
  for (const json& row : golden["rows"]) {
    const std::string model = row["model"];
    const ModelFolder folder = load_model_folder(kLabelGoldens / model);
    const AttributionReport found = heads_attribution(
        folder, text,
        {.methods = {AttributionMethod::kGradientTimesInput, AttributionMethod::kIntegratedGradients},
         .label = row["label"],
         .pair = pair});
    EXPECT_NEAR(found.score, row["score"].get<double>(), 1e-5) << model;
    const std::vector<double>& scores = found.of(AttributionMethod::kGradientTimesInput);
    const std::vector<double> wanted = row["scores"];
    ASSERT_EQ(scores.size(), wanted.size()) << model;
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(found.tokens[i].id, row["ids"][i]) << model << " " << i;
      EXPECT_NEAR(scores[i], wanted[i], 1e-5) << model << " " << i;
    }
    // And they explain what `classify` says of both texts.
    const auto number = static_cast<size_t>(found.explained_id);
    EXPECT_NEAR(classify_text(folder, {text}, {.pairs = {pair}})[0].rows[0].logits[number], found.score,
                1e-5);
    const std::vector<double>& integrated = found.of(AttributionMethod::kIntegratedGradients);
    EXPECT_NEAR(std::accumulate(integrated.begin(), integrated.end(), 0.0),
                found.score - found.replaced_score, 0.02);
  }
}

TEST_F(PairAttribution, SaysOfWhichTextATokenIs) {
  const ModelFolder folder = load_model_folder(kLabelGoldens / "bert_pairs");
  const AttributionReport found = heads_attribution(
      folder, text, {.methods = {AttributionMethod::kRollout}, .label = "neutral", .pair = pair});
  EXPECT_EQ(found.pair, pair);
  std::vector<std::string> words;  // of the second text
  for (const ReadToken& token : found.tokens) {
    if (!token.of_pair || token.kept) continue;
    words.push_back(token.label);
    const auto length = static_cast<size_t>(token.characters.second - token.characters.first);
    EXPECT_EQ(pair.substr(static_cast<size_t>(token.characters.first), length), token.label);
  }
  EXPECT_THAT(words, testing::ElementsAre("two", "dogs"));
  EXPECT_FALSE(found.tokens.front().of_pair);
  EXPECT_TRUE(found.tokens.back().of_pair);
  const json report = json::parse(attribution_json(found, "bert_pairs", text));
  EXPECT_EQ(report["text"], text);
  EXPECT_EQ(report["pair"], pair);
  EXPECT_EQ(report["tokens"].front()["of_pair"], false);
  EXPECT_EQ(report["tokens"].back()["of_pair"], true);
}

TEST_F(PairAttribution, IsRefusedWhereTextsAreReadAlone) {
  const ModelFolder causal = test::attribution_llama();
  EXPECT_THAT([&] { heads_attribution(causal, text, {.pair = pair}); },
              ThrowsMessage<UsageError>(HasSubstr("does not read two texts as one sequence")));
}

}  // namespace
}  // namespace mh

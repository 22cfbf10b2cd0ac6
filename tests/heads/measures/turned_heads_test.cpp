// No measure of heads changes where the outputs of the model do not: every report of `multihead heads` on a model, and on the same
// model whose heads lie in other bases.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "multihead/heads/measures/inspect_heads.h"
#include "multihead/heads/reports/attribution_json.h"
#include "multihead/heads/reports/circuits_json.h"
#include "multihead/heads/reports/importance_json.h"
#include "multihead/heads/reports/measures_json.h"
#include "multihead/heads/reports/patch_json.h"
#include "multihead/heads/reports/report_json.h"
#include "multihead/heads/reports/similar_json.h"
#include "multihead/heads/reports/where_json.h"
#include "tests/heads/attribution/attribution_families.h"
#include "tests/heads/measures/synthetic.h"
#include "tests/support/turned_heads.h"

namespace mh {
namespace {

using test::word;

/// Of the right kind of each measure a report as JSON, by its name.
using Reports = std::vector<std::pair<std::string, std::string>>;

HeadsText turned_text(bool translations) {
  HeadsText text{.sources = {"two dogs run in the park", "a cat sees the small dogs",
                             "two small cats and two dogs see a park .", "the dogs run"}};
  for (const std::string& line : text.sources) {
    auto& tree = text.source_trees.emplace_back();
    int words = 0;
    for (size_t at = 0; at != std::string::npos; at = line.find(' ', at + 1)) ++words;
    for (int i = 0, from = 0; i < words; ++i) {
      const size_t begin = static_cast<size_t>(from), end = line.find(' ', begin);
      Word one = word("", i + 1 == words ? -1 : i + 1, i % 2 == 0 ? "det" : "amod");
      one.form = one.lemma = line.substr(begin, end - begin);
      tree.push_back(one);
      from = static_cast<int>(end) + 1;
    }
  }
  if (translations) {
    text.targets = {"two cats run", "a park sees the dog", "the dog sees the cat and the small dogs",
                    "see two dogs"};
    text.alignments = {{{0, 0}, {1, 2}}, {{1, 1}, {3, 2}}, {{2, 0}, {5, 4}}, {{0, 1}}};
  }
  return text;
}

Reports reports_of(const ScoredModel& model, bool translations) {
  const ModelFolder& folder = model.folder();
  const HeadsText text = turned_text(translations);
  Reports all;
  const auto corpus = [&] { return std::make_unique<TextCorpus>(text); };
  all.emplace_back("stats", stats_json(heads_stats(folder, *corpus()), "m"));
  all.emplace_back("similar", similar_json(heads_similar(folder, *corpus()), "m"));
  all.emplace_back("where",
                   where_json(heads_where(folder, *corpus(), {.evidence = {.least_count = 1}}), "m"));
  // Without the heads with random weights, whose numbers are those of W^Q and W^K in another order: a draw, as with another seed.
  all.emplace_back(
      "relations",
      relations_json(
          heads_relations(folder, *corpus(), {.least_support = 1, .random = false, .probe_epochs = 2}), "m"));
  if (translations) all.emplace_back("alignment", alignment_json(heads_alignment(folder, *corpus()), "m"));
  all.emplace_back("circuits", circuits_json("m", heads_circuits(*folder.model)));
  // The masked words of the encoder that has a head for words need a mask token, which this tokenizer has not.
  const ScoreKind kind = score_kind(folder);
  for (const ImportanceMeasure measure :
       {ImportanceMeasure::kGradient, ImportanceMeasure::kAblation, ImportanceMeasure::kAlone}) {
    if (kind == ScoreKind::kMaskedWords) break;
    for (const AblatedTo to : {AblatedTo::kZero, AblatedTo::kMean}) {
      all.emplace_back(
          "importance",
          importance_json(heads_importance(model, *corpus(), {.measure = measure, .to = to}), "m"));
      if (measure == ImportanceMeasure::kGradient) break;
    }
  }
  const bool vectors = kind == ScoreKind::kVectors;
  const AttributionOptions options{.target = translations ? "two cats run" : "", .steps = 8};
  all.emplace_back("attribution",
                   attribution_json(vectors ? heads_attribution(model.sentences(), text.sources[0],
                                                                text.sources[1], {.steps = 8})
                                            : heads_attribution(folder, text.sources[0], options),
                                    "m", text.sources[0]));
  if (kind == ScoreKind::kNextTokens) {
    all.emplace_back("patch", patch_json(heads_patch(folder, {.clean = "two dogs run in the",
                                                              .corrupt = "two cats run in the",
                                                              .answer = "park",
                                                              .wrong = "dogs"}),
                                         "m"));
  }
  return all;
}

/// Every number of both, and every word.
void expect_alike(const nlohmann::json& a, const nlohmann::json& b, const std::string& where) {
  ASSERT_EQ(a.type_name(), std::string(b.type_name())) << where;
  if (a.is_number()) {
    const double x = a.get<double>(), y = b.get<double>();
    EXPECT_NEAR(x, y, 2e-3 * std::max(1.0, std::abs(x))) << where;
  } else if (a.is_structured()) {
    ASSERT_EQ(a.size(), b.size()) << where;
    for (const auto& [key, value] : a.items())
      expect_alike(value, a.is_object() ? b.at(key) : b.at(std::stoul(key)), where + "." + key);
  } else {
    EXPECT_EQ(a, b) << where;
  }
}

void expect_nothing_moves(ScoredModel model, bool translations = false) {
  const Reports before = reports_of(model, translations);
  test::turn_heads(*model.folder().model, 5);
  const Reports after = reports_of(model, translations);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i)
    expect_alike(nlohmann::json::parse(before[i].second), nlohmann::json::parse(after[i].second),
                 before[i].first);
}

TEST(TurnedHeads, OfATranslatorSayTheSame) {
  expect_nothing_moves(test::attribution_translator(), true);
}

TEST(TurnedHeads, OfAnEncoderSayTheSame) {
  expect_nothing_moves(test::attribution_encoder());
}

TEST(TurnedHeads, OfASentenceModelSayTheSame) {
  expect_nothing_moves(test::attribution_sentences());
}

// Norms of queries and keys leave W^Q and W^K as they are; six heads share two heads of keys and values.
TEST(TurnedHeads, WithNormsOfQueriesAndKeysSayTheSame) {
  expect_nothing_moves(test::attribution_llama());
}

TEST(TurnedHeads, WithRotaryPositionsSayTheSame) {
  Tokenizer tokenizer = test::attribution_tokenizer();
  CausalConfig config = test::gpt_config();
  config.embedding.vocabulary = tokenizer.size();
  config.max_positions = 43;
  config.positions = config.stack.positions = Positions::kRotary;
  for (LayerConfig& layer : config.stack.layers)
    layer.self_attention = {.heads = 6, .d_key = 4, .d_value = 5, .key_heads = 3, .value_heads = 2};
  expect_nothing_moves(test::attribution_folder(std::make_unique<CausalModel>(config), std::move(tokenizer)));
}

// The turn itself: weights are other numbers, outputs are not; and an R that rotary positions do not allow moves them.
TEST(TurnedHeads, AreOtherNumbersWithTheSameOutputs) {
  ModelFolder folder = test::attribution_encoder();
  const auto largest = [](const Tensor& a, const Tensor& b) {
    double found = 0;
    for (int64_t i = 0; i < a.size(); ++i)
      found = std::max(found, std::abs(static_cast<double>(a.data()[i] - b.data()[i])));
    return found;
  };
  const std::string name = folder.model->attentions()[0].name;
  const LayerWeights before = weights_of(folder.model->attention(name), folder.model->facts().d_model);
  const double score = heads_attribution(folder, "two dogs run").score;
  test::turn_heads(*folder.model, 5);
  const LayerWeights after = weights_of(folder.model->attention(name), folder.model->facts().d_model);
  for (const char* part : {"w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v"})
    EXPECT_GT(largest(before.values.at(part), after.values.at(part)), 0.1) << part;
  EXPECT_EQ(largest(before.values.at("b_o"), after.values.at("b_o")), 0);
  EXPECT_NEAR(heads_attribution(folder, "two dogs run").score, score, 1e-4);
}

}  // namespace
}  // namespace mh

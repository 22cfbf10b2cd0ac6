// Pruned models give what the muted ones give, in every family, and are as small as they can be.
#include "multihead/heads/conversion/prune_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/heads/conversion/compare_speed.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/multi_head_attention.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

std::vector<HeadPattern> patterns(const std::vector<std::string>& texts) {
  std::vector<HeadPattern> all;
  for (const std::string& text : texts) all.emplace_back(text);
  return all;
}

/// Sentences and, for a translator, targets as its decoder reads them.
struct PruneProbe {
  explicit PruneProbe(const Model& model) {
    const ModelFacts facts = model.facts();
    sources = random_sentences(facts, facts.vocabulary_read(), 3, 5);
    if (dynamic_cast<const EncoderDecoder*>(&model) == nullptr) return;
    targets = random_sentences(facts, facts.vocabulary, 3, 6);
    for (auto& target : targets) target.insert(target.begin(), facts.start_id);
  }
  Difference difference(const Model& a, const Model& b, Sites* sites = nullptr) const {
    return compare_models(a, b, sources, targets, sites).of_outputs();
  }
  Difference from_muted(const Model& given, const Model& pruned, const PrunePlan& plan) const {
    SiteValues muted;
    for (const std::string& head : plan.muted()) muted.mute(head);
    return difference(given, pruned, &muted);
  }
  std::vector<std::vector<int32_t>> sources, targets;
};

class PrunedFamily : public testing::TestWithParam<const char*> {
 protected:
  ModelFolder folder = load_model_folder(std::filesystem::path(goldens_folder()) / GetParam());
  test::ScratchFolder scratch;
};

// All heads of the first attention, whose last one stays and is silent, and one of the last.
TEST_P(PrunedFamily, IsTheMutedModelAndOpensAgain) {
  const auto attentions = folder.model->attentions();
  const PrunePlan plan =
      plan_pruning(*folder.model, patterns({attentions.front().name + ".*", attentions.back().name + ".0"}));
  const std::unique_ptr<Model> given = std::exchange(folder.model, prune_heads(*folder.model, plan));
  const PruneProbe probe(*given);
  const Difference found = probe.from_muted(*given, *folder.model, plan);
  EXPECT_LE(found.largest, 1e-5 * std::max(1.0, found.magnitude));
  EXPECT_GT(probe.difference(*given, *folder.model).largest, 1e-3 * found.magnitude);
  EXPECT_GT(plan.removed(), 0);
  EXPECT_LT(folder.model->parameter_count(), given->parameter_count());
  const auto left = folder.model->attentions();
  for (size_t i = 0; i < left.size(); ++i)
    EXPECT_EQ(left[i].heads, attentions[i].heads - std::ssize(plan.attentions[i].removed)) << left[i].name;
  const std::string out = scratch / "pruned";
  save_model_folder(out, folder, {.own_format = OwnFormat::kAllowed, .removed = plan.removed_heads()});
  const ModelFolder again = load_model_folder(out);
  EXPECT_EQ(probe.difference(*folder.model, *again.model).largest, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, PrunedFamily,
                         testing::Values("bert/masked", "bert/encoder", "distilbert/masked", "roberta/masked",
                                         "roberta/camembert", "gpt2/tied", "gpt2/untied_shards_bf16",
                                         "llama/tied_grouped", "llama/llama3_one_key_f16", "mistral/window",
                                         "qwen2/some_windows", "qwen3/tied", "electra/masked", "mpnet/masked",
                                         "modernbert/masked", "modernbert/encoder", "nomic_bert/masked",
                                         "gemma2/capped", "gemma2/scores_capped_bf16", "gemma3_text/plain",
                                         "gpt_neo/windows", "gpt_neox/parallel", "gpt_neox/sequential_bf16",
                                         "opt/before", "opt/after_bf16", "phi/plain", "phi/grouped_bf16",
                                         "phi3/grouped", "phi3/longrope_bf16", "smollm3/some_turn",
                                         "smollm3/windows_bf16"));

// transformers 5 refuses a number of heads that does not divide hidden_size, though head_dim says their size.
TEST(PrunedGemma, HeadsThatDoNotDivideTheRowNeedOurOwnFormat) {
  ModelFolder folder =
      load_model_folder(std::filesystem::path(goldens_folder()) / "gemma2/scores_capped_bf16");
  const auto saved = [&](const std::vector<std::string>& heads, OwnFormat own) {
    ModelFolder pruned = load_model_folder(folder.path);
    pruned.model = prune_heads(*folder.model, plan_pruning(*folder.model, patterns(heads)));
    const test::ScratchFolder scratch;
    save_model_folder(scratch / "pruned", pruned, {.own_format = own});
    return json::parse(read_file(std::filesystem::path(scratch / "pruned") / "config.json"));
  };
  const json divided = saved({"decoder.*.0", "decoder.*.1"}, OwnFormat::kRefused);
  EXPECT_EQ(divided["num_attention_heads"], 4);
  EXPECT_FALSE(divided.contains("multihead_heads"));
  EXPECT_THAT(
      [&] { saved({"decoder.*.0"}, OwnFormat::kRefused); },
      ThrowsMessage<UsageError>(HasSubstr("num_attention_heads is 5; expected a divisor of hidden_size 24")));
  EXPECT_TRUE(saved({"decoder.*.0"}, OwnFormat::kAllowed).contains("multihead_heads"));
}

class PruneTranslator : public testing::Test {
 protected:
  static TranslatorShape config_of(HeadGeometry geometry, Positions positions = Positions::kSinusoidal) {
    TranslatorShape shape = small_shape();
    shape.encoder_heads = shape.decoder_heads = 6;
    shape.d_model = 24;
    shape.geometry = geometry;
    shape.positions = positions;
    return shape;
  }
  static std::unique_ptr<EncoderDecoder> made(HeadGeometry geometry,
                                              Positions positions = Positions::kSinusoidal) {
    auto model = std::make_unique<EncoderDecoder>(config_of(geometry, positions).config());
    model->initialise(11);
    sharpen(*model, 1.5f);
    return model;
  }
  static PrunedAttention plan_of(const Model& model, const std::vector<std::string>& heads,
                                 size_t attention = 0) {
    return plan_pruning(model, patterns(heads)).attentions.at(attention);
  }
};

TEST_F(PruneTranslator, LayersMayDiffer) {
  const auto model = made({});
  const PrunePlan plan =
      plan_pruning(*model, patterns({"encoder.1.self_attention.2", "decoder.0.cross_attention.*",
                                     "decoder.2.self_attention.0", "decoder.2.self_attention.5"}));
  const auto pruned = prune_heads(*model, plan);
  EXPECT_EQ(pruned->attention("encoder.0.self_attention").heads(), 6);
  EXPECT_EQ(pruned->attention("encoder.1.self_attention").heads(), 5);
  EXPECT_EQ(pruned->attention("decoder.0.cross_attention").heads(), 1);
  EXPECT_EQ(pruned->attention("decoder.2.self_attention").heads(), 4);
  EXPECT_EQ(plan.removed(), 1 + 5 + 2);
  EXPECT_EQ(plan.silent(), 1);
  EXPECT_EQ(std::ssize(plan.muted()), 9);
  EXPECT_EQ(plan.heads(), 6 * 8);
  const PruneProbe probe(*model);
  const Difference found = probe.from_muted(*model, *pruned, plan);
  EXPECT_LE(found.largest, 1e-5 * std::max(1.0, found.magnitude));
  EXPECT_GT(probe.difference(*model, *pruned).largest, 1e-2);
  // d_model 24 and heads of 4: each head that goes takes 4 rows or columns of four matrices and three biases along.
  EXPECT_EQ(model->parameter_count() - pruned->parameter_count(), 8 * (4 * 24 * 4 + 3 * 4));
}

// Six heads, of which two at a time share keys and values.
TEST_F(PruneTranslator, AKeyHeadGoesWhenItsWholeGroupDoes) {
  const auto model = made({.key_heads = 3});
  const auto name = [](int head) { return "encoder.0.self_attention." + std::to_string(head); };
  const auto of = [&](const std::vector<int>& heads) {
    std::vector<std::string> names;
    names.reserve(heads.size());
    for (const int head : heads) names.push_back(name(head));
    return plan_of(*model, names);
  };
  const PrunedAttention group = of({0, 1});
  EXPECT_THAT(group.removed, ElementsAre(0, 1));
  EXPECT_EQ(group.key_heads_removed, 1);
  const PrunedAttention one = of({0});
  EXPECT_THAT(one.removed, IsEmpty());
  EXPECT_THAT(one.silent, ElementsAre(0));
  EXPECT_EQ(one.key_heads_removed, 0);
  const PrunedAttention one_of_each = of({0, 3, 4});
  EXPECT_THAT(one_of_each.removed, ElementsAre(0, 3, 4));
  EXPECT_EQ(one_of_each.key_heads_removed, 0);
  const PrunedAttention mixed = of({0, 1, 2, 5});
  EXPECT_THAT(mixed.removed, ElementsAre(0, 1, 2, 5));
  EXPECT_EQ(mixed.key_heads_removed, 1);
  const PrunedAttention uneven = of({0, 1, 2});
  EXPECT_THAT(uneven.removed, ElementsAre(0, 1));
  EXPECT_THAT(uneven.silent, ElementsAre(2));
  const PrunedAttention all = of({0, 1, 2, 3, 4, 5});
  EXPECT_EQ(all.removed.size(), 5u);
  EXPECT_THAT(all.silent, ElementsAre(0));
  EXPECT_EQ(all.key_heads_removed, 2);

  const PruneProbe probe(*model);
  for (const std::vector<int>& heads : {std::vector<int>{0}, {0, 1, 2}, {0, 1, 2, 3, 4, 5}, {5, 0, 2}}) {
    std::vector<std::string> names;
    for (const int head : heads) names.push_back(name(head));
    const PrunePlan plan = plan_pruning(*model, patterns(names));
    const auto pruned = prune_heads(*model, plan);
    const Difference found = probe.from_muted(*model, *pruned, plan);
    EXPECT_LE(found.largest, 1e-5 * std::max(1.0, found.magnitude));
    EXPECT_EQ(pruned->attention("encoder.0.self_attention").geometry().key_heads,
              3 - plan.attentions[0].key_heads_removed);
  }
}

// A pattern for all heads leaves a silent one in each attention: only the residual stream and the other sublayers are left.
TEST_F(PruneTranslator, TheLastHeadOfALayerStaysAndIsSilent) {
  const auto model = made({});
  const PrunePlan plan = plan_pruning(*model, patterns({"*"}));
  EXPECT_EQ(plan.silent(), std::ssize(model->attentions()));
  const auto pruned = prune_heads(*model, plan);
  const Difference found = PruneProbe(*model).from_muted(*model, *pruned, plan);
  EXPECT_LE(found.largest, 1e-5 * std::max(1.0, found.magnitude));
  const LayerWeights left = weights_of(pruned->attention("decoder.1.cross_attention"), 24);
  EXPECT_EQ(left.geometry.heads, 1);
  const Tensor& w_o = left.values.at("w_o");
  EXPECT_TRUE(std::all_of(w_o.data(), w_o.data() + w_o.size(), [](float number) { return number == 0; }));
  // And once more: nothing is left to go.
  const PrunePlan again = plan_pruning(*pruned, patterns({"*"}));
  EXPECT_EQ(again.removed(), 0);
}

// MPNet's layers share one table of biases, a row a head.
TEST(PruneHeads, OfOneTableAHeadGoesInAllLayersOrInNone) {
  ModelFolder folder = load_model_folder(std::filesystem::path(goldens_folder()) / "mpnet/masked");
  const PruneProbe probe(*folder.model);
  const auto check = [&](const std::vector<std::string>& heads, int64_t removed, int64_t silent) {
    const PrunePlan plan = plan_pruning(*folder.model, patterns(heads));
    EXPECT_EQ(plan.removed(), removed);
    EXPECT_EQ(plan.silent(), silent);
    const auto pruned = prune_heads(*folder.model, plan);
    const Difference found = probe.from_muted(*folder.model, *pruned, plan);
    EXPECT_LE(found.largest, 1e-5 * std::max(1.0, found.magnitude));
  };
  check({"encoder.1.self_attention.1"}, 0, 1);
  check({"encoder.*.1"}, 2, 0);
  check({"encoder.0.self_attention.0", "encoder.1.self_attention.1"}, 0, 2);
  check({"*"}, 2, 2);
}

TEST_F(PruneTranslator, OtherPositionsAndHeadsGoToo) {
  for (const auto& [geometry, positions] :
       {std::pair{HeadGeometry{}, Positions::kT5}, std::pair{HeadGeometry{}, Positions::kShaw},
        std::pair{HeadGeometry{}, Positions::kRotary},
        std::pair{HeadGeometry{.weights = HeadWeights::kDifferential}, Positions::kSinusoidal},
        std::pair{HeadGeometry{.query_key_norm = QueryKeyNorm::kRms}, Positions::kSinusoidal},
        std::pair{HeadGeometry{.scores = Scores::kTied}, Positions::kSinusoidal}}) {
    const auto model = made(geometry, positions);
    const PrunePlan plan = plan_pruning(*model, patterns({"encoder.*.0", "decoder.1.self_attention.*"}));
    const auto pruned = prune_heads(*model, plan);
    const Difference found = PruneProbe(*model).from_muted(*model, *pruned, plan);
    EXPECT_LE(found.largest, 1e-5 * std::max(1.0, found.magnitude));
    EXPECT_GT(plan.removed(), 0);
  }
}

TEST_F(PruneTranslator, WhatCannotGoIsNamedWithARemedy) {
  const auto refused = [](const Model& given, const std::string& head) {
    auto& model = const_cast<Model&>(given);
    return [&model, head] { prune_heads(model, plan_pruning(model, patterns({head}))); };
  };
  const auto model = made({});
  EXPECT_THAT(refused(*model, "encoder.7.self_attention.0"),
              ThrowsMessage<UsageError>(HasSubstr("encoder.7.self_attention")));
  EXPECT_THAT(refused(*model, "encoder.1.self_attention.6"), ThrowsMessage<UsageError>(HasSubstr("6")));
  EXPECT_THAT([&] { plan_pruning(*model, {}); }, ThrowsMessage<UsageError>(HasSubstr("no head is named")));
  EXPECT_THAT(refused(*made({}, Positions::kAlibi), "encoder.1.self_attention.0"),
              ThrowsMessage<UsageError>(HasSubstr("encoder.1.self_attention: ALiBi positions")));
  EXPECT_THAT(refused(*made({.weights = HeadWeights::kTalking}), "encoder.1.self_attention.0"),
              ThrowsMessage<UsageError>(HasSubstr("talking heads mix")));
  EXPECT_THAT(refused(*made({.input = HeadInput::slices()}), "encoder.1.self_attention.0"),
              ThrowsMessage<UsageError>(HasSubstr("convert to canonical first")));
  EXPECT_THAT(refused(*made({.output = HeadOutput::kConcatenation}), "encoder.1.self_attention.0"),
              ThrowsMessage<UsageError>(HasSubstr("without W^O")));
}

TEST_F(PruneTranslator, BothModelsAreTimed) {
  const auto model = made({});
  const auto pruned = prune_heads(*model, plan_pruning(*model, patterns({"*"})));
  const PruneProbe probe(*model);
  const PassSeconds seconds = compare_speed(*model, *pruned, probe.sources, probe.targets, 2);
  int64_t tokens = 0;
  for (const auto* side : {&probe.sources, &probe.targets}) {
    for (const auto& sentence : *side) tokens += std::ssize(sentence);
  }
  EXPECT_EQ(seconds.tokens, tokens);
  EXPECT_GT(seconds.first, 0);
  EXPECT_GT(seconds.second, 0);
  EXPECT_LT(seconds.second, 10);
}

}  // namespace
}  // namespace mh

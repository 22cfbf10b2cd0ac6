// Circuits of models made by hand, whose edges are known; the report, and what is refused.
#include "multihead/heads/circuit/heads_circuit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "multihead/heads/reports/circuit_json.h"
#include "multihead/heads/reports/pictures/draw_circuit.h"
#include "tests/heads/patching/patch_families.h"

namespace mh {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

/// As many layers as there are heads in this list, of two heads each. The named head of each layer looks at all tokens alike and moves what the
/// layer before wrote: the embeddings of "dogs" and "cats" lie in columns 0 and 1, layer l writes into columns 2 l + 3 and 2 l + 4, of
/// which the last say "park" and "small". All else is 0.
ScoredModel chain(const std::vector<int>& heads) {
  CausalConfig config = test::gpt_config();
  config.tied = false;
  config.positions = Positions::kNone;
  config.stack.norm.kind = NormKind::kRms;
  config.stack.layers.clear();
  for (size_t i = 0; i < heads.size(); ++i) {
    config.stack.layers.push_back(
        {.self_attention = {.heads = 2, .d_key = 2, .d_value = 3, .biases = Biases::kNone},
         .feed_forward = {.d_ff = 5}});
  }
  auto model = std::make_unique<CausalModel>(config);
  const auto set = [&](const std::string& named, const std::vector<std::pair<int, int>>& places,
                       float number) {
    model->visit(ParameterVisitor([&](const std::string& name, Parameter& parameter) {
      if (name != named) return;
      for (const auto& [row, column] : places) parameter.value(row, column) = number;
      parameter.changed();
    }));
  };
  model->visit(ParameterVisitor([](const std::string& name, Parameter& parameter) {
    if (!name.ends_with(".gain")) return;
    parameter.value.fill(1);
    parameter.changed();
  }));
  const Tokenizer words = word_tokenizer(kWords);
  for (const std::string& word : kWords)
    set("embedding", {{*words.id_of(word), word == "dogs" ? 0 : word == "cats" ? 1 : 2}}, 1);
  int from = 0, to = 3;
  for (size_t layer = 0; layer < heads.size(); ++layer) {
    const std::string attention = "decoder." + std::to_string(layer) + ".self_attention";
    const int first = 3 * heads[layer];
    set(attention + ".w_v", {{from, first}, {from + 1, first + 1}}, 1);
    set(attention + ".w_o", {{first, to}, {first + 1, to + 1}}, 4);
    from = to;
    to += 2;
  }
  set("output", {{*words.id_of("park"), from}, {*words.id_of("small"), from + 1}}, 3);
  return ScoredModel(folder_of(std::move(model), "gpt2"));
}

const PatchQuestion kDogs{
    .clean = "two dogs see the", .corrupt = "two cats see the", .answer = "park", .wrong = "small"};

std::vector<std::string> names_of(const std::vector<CircuitEdge>& edges) {
  std::vector<std::string> names;
  for (const CircuitEdge& edge : edges) names.push_back(edge.from + " -> " + edge.to);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Circuit, TheEdgesOfTwoHeadsAreFoundAndNothingElse) {
  const CircuitReport found = heads_circuit(chain({1, 0}), std::vector{kDogs}, {.random = 20});
  EXPECT_THAT(names_of(found.edges),
              ElementsAre("decoder.0.self_attention.1 -> decoder.1.self_attention.0.values",
                          "decoder.1.self_attention.0 -> decoder.states",
                          "decoder.embeddings -> decoder.0.self_attention.1.values"));
  EXPECT_NEAR(found.faithfulness.mean, 1, 1e-4);
  EXPECT_NEAR(found.completeness.mean, 1, 1e-4);
  EXPECT_EQ(found.needed_pairs, 1);
  EXPECT_EQ(found.random.count, 20);
  EXPECT_EQ(found.random.as_faithful, 0);
  for (size_t i = 0; i < 3; ++i) {  // each edge alone carries all of it
    EXPECT_NEAR(found.exact[i].effect->mean, 1, 1e-4) << found.exact[i].to;
    EXPECT_NEAR(found.exact[i].score, 1, 0.25);  // norms bend the way between the two texts
  }
  for (size_t i = 3; i < found.exact.size(); ++i) EXPECT_NEAR(found.exact[i].effect->mean, 0, 1e-4);
}

TEST(Circuit, TheEdgesOfThreeHeadsAreFoundInAllPairs) {
  const PatchQuestion cats{
      .clean = "the cats run", .corrupt = "the dogs run", .answer = "small", .wrong = "park"};
  const CircuitReport found = heads_circuit(chain({0, 1, 1}), std::vector{kDogs, cats, kDogs}, {.random = 0});
  EXPECT_THAT(names_of(found.edges),
              ElementsAre("decoder.0.self_attention.0 -> decoder.1.self_attention.1.values",
                          "decoder.1.self_attention.1 -> decoder.2.self_attention.1.values",
                          "decoder.2.self_attention.1 -> decoder.states",
                          "decoder.embeddings -> decoder.0.self_attention.0.values"));
  EXPECT_EQ(found.pairs, 3);
  EXPECT_EQ(found.pairs_elsewhere, 0);
  EXPECT_EQ(found.needed_pairs, 3);
  EXPECT_NEAR(found.faithfulness.mean, 1, 1e-4);
  EXPECT_LT(found.faithfulness.half, 1e-3);
}

TEST(Circuit, IsProvedOnTheFirstPairsAndTriedOnTheNext) {
  const PatchQuestion cats{
      .clean = "the cats run", .corrupt = "the dogs run", .answer = "small", .wrong = "park"};
  const CircuitReport found =
      heads_circuit(chain({1, 0}), std::vector{kDogs, cats, kDogs, cats}, {.most_pairs = 1, .random = 0});
  EXPECT_EQ(found.pairs, 4);
  EXPECT_EQ(found.proved_pairs, 1);
  EXPECT_EQ(found.pairs_elsewhere, 1);
  EXPECT_NEAR(found.faithfulness_elsewhere.mean, 1, 1e-4);
}

TEST(Circuit, EveryKindOfModelHasOneThatKeepsTheShare) {
  const auto expect_circuit = [](ModelFolder folder, PatchQuestion pair) {
    const PatchReport patched = heads_patch(folder, pair);
    if (patched.clean.score() < patched.corrupt.score()) std::swap(pair.clean, pair.corrupt);
    const CircuitReport found = heads_circuit(ScoredModel(std::move(folder)), std::vector{pair},
                                              {.share = 0.9, .exact = 7, .random = 5});
    EXPECT_GE(found.faithfulness.mean, 0.9);
    EXPECT_GE(std::ssize(found.edges), 1);
    EXPECT_LE(std::ssize(found.edges), found.strongest);
    EXPECT_LT(found.strongest, found.edges_of_model);
  };
  expect_circuit(causal_folder(), kContinued);
  expect_circuit(llama_folder(), kContinued);
  expect_circuit(bert_folder(), kMasked);
  expect_circuit(modern_bert_folder(), kMasked);
  expect_circuit(translator_folder(), kTranslated);
}

TEST(Circuit, RandomEdgesAreMeasuredToo) {
  const ScoredModel model(causal_folder());
  const auto measured = [&](int64_t count, uint64_t seed) {
    return heads_circuit(
               model, std::vector{kDogs},
               {.exact = count, .exact_of = ExactEdges::kRandom, .removals = 0, .random = 0, .seed = seed})
        .exact;
  };
  const std::vector<CircuitEdge> all = measured(100'000, 1), some = measured(13, 1), others = measured(13, 2);
  ASSERT_EQ(some.size(), 13u);
  const auto names = names_of(some);
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), 13u);
  EXPECT_EQ(names, names_of(measured(13, 1)));
  EXPECT_NE(names, names_of(others));
  std::vector<CircuitEdge> largest(all.begin(), all.begin() + 13);
  EXPECT_NE(names, names_of(largest));
  EXPECT_TRUE(std::is_sorted(some.begin(), some.end(), [](const CircuitEdge& a, const CircuitEdge& b) {
    return std::abs(a.score) > std::abs(b.score);
  }));
  for (const CircuitEdge& edge : some) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const CircuitEdge& other) {
      return other.from == edge.from && other.to == edge.to;
    });
    ASSERT_NE(same, all.end());
    EXPECT_NEAR(edge.effect->mean, same->effect->mean, 1e-4);
  }
}

TEST(Circuit, ResultsDependNeitherOnBatchesNorOnTheOrderOfOtherPairs) {
  const PatchQuestion other{
      .clean = "a small dogs", .corrupt = "the small cats", .answer = "park", .wrong = "small"};
  const std::vector<PatchQuestion> pairs = {kDogs, other}, turned = {other, kDogs};
  const ScoredModel model(chain({1, 1}));
  const CircuitOptions small{.random = 7, .max_batch_tokens = 1}, large{.random = 7};
  const CircuitReport a = heads_circuit(model, pairs, small), b = heads_circuit(model, turned, large);
  EXPECT_EQ(names_of(a.edges), names_of(b.edges));
  EXPECT_NEAR(a.faithfulness.mean, b.faithfulness.mean, 1e-4);
  EXPECT_NEAR(a.random.mean, b.random.mean, 1e-4);
  for (size_t i = 0; i < a.exact.size(); ++i) EXPECT_NEAR(a.exact[i].score, b.exact[i].score, 1e-4);
}

void expect_refused(const std::vector<PatchQuestion>& pairs, const char* why,
                    const CircuitOptions& options = {},
                    const ScoredModel& model = ScoredModel(causal_folder())) {
  try {
    heads_circuit(model, pairs, options);
    ADD_FAILURE() << "not refused: " << why;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(why));
  }
}

TEST(Circuit, WhatCannotBeIsRefusedInOneLine) {
  expect_refused({}, "no pair");
  PatchQuestion longer = kContinued;
  longer.clean = "two small dogs see the";
  expect_refused({kContinued, longer}, "pair 2: ");
  PatchQuestion turned = kDogs;
  std::swap(turned.clean, turned.corrupt);
  expect_refused({turned}, "exchange", {}, chain({1, 0}));
  PatchQuestion same = kContinued;
  same.corrupt = same.clean;
  expect_refused({same}, "too small");
  PatchQuestion nothing = kContinued;
  nothing.answer = "zebra";
  expect_refused({nothing}, "pair 1: ");
  expect_refused({kContinued}, "`share`", {.share = 1.5});
  expect_refused({kContinued}, "`steps`", {.steps = 0});
}

TEST(Circuit, IsDrawnAndWritten) {
  const CircuitReport found = heads_circuit(chain({1, 0}), std::vector{kDogs}, {.random = 3});
  const std::string picture = draw_circuit(found), json = circuit_json(found, "chain");
  EXPECT_THAT(picture, HasSubstr("decoder.1.self_attention.0 -&gt; decoder.states"));
  EXPECT_THAT(picture, HasSubstr("A circuit of 3 of "));
  EXPECT_THAT(json, HasSubstr("\"needed_pairs\": 1"));
  EXPECT_THAT(json, HasSubstr("\"input\": \"values\""));
}

}  // namespace
}  // namespace mh

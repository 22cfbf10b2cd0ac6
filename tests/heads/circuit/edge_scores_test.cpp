// Scores of edges beside their effects, each measured by a run of its own.
#include "multihead/heads/circuit/edge_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/circuit/edge_passes.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

std::vector<double> ranks(const std::vector<double>& numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
  std::vector<double> found(numbers.size());
  for (size_t i = 0; i < order.size(); ++i) found[order[i]] = static_cast<double>(i);
  return found;
}

/// Spearman's rank correlation.
double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double both = 0, one = 0, other = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    both += (x[i] - mean) * (y[i] - mean);
    one += (x[i] - mean) * (x[i] - mean);
    other += (y[i] - mean) * (y[i] - mean);
  }
  return both / std::sqrt(one * other);
}

class EdgeScoresOf : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Models, EdgeScoresOf,
                         testing::Values("bert/masked", "gemma2/logits_capped", "gpt2/tied",
                                         "gpt_neox/parallel", "llama/tied_grouped", "marian/gelu_f16",
                                         "t5/plain"),
                         [](const auto& of) { return test_name_of(of.param); });

TEST_P(EdgeScoresOf, RankEdgesAsTheirEffectsDo) {
  ModelFolder folder = load_model_folder(kGoldens / GetParam());
  // The corrupt words are near the clean ones, where an estimate by gradients must be right.
  folder.model->visit(ParameterVisitor([](const std::string& name, Parameter& parameter) {
    if (name != "embedding") return;
    for (const auto& [corrupt, clean] : {std::pair(8, 3), std::pair(4, 11)}) {
      for (int64_t c = 0; c < parameter.value.cols(); ++c)
        parameter.value(corrupt, c) =
            parameter.value(clean, c) + 0.1f * (parameter.value(corrupt, c) - parameter.value(clean, c));
    }
    parameter.changed();
  }));
  const ScoredModel model(std::move(folder));
  std::vector<CircuitPair> pairs(1);
  PatchTexts& texts = pairs[0].texts;
  texts.clean.ids = {5, 3, 7, 11, 2, 1};
  texts.corrupt.ids = {5, 8, 7, 4, 2, 1};
  texts.predicting = 2;
  texts.answer.token = 6;
  texts.wrong.token = 7;
  if (translates(model.folder())) texts.target.ids = {2, 9, 4, 8};
  const CircuitTexts of(model);
  const StreamGraph graph(of.model());
  const HeadMatrices matrices(graph);
  EdgeScores scores(of, graph, matrices, {.steps = 20});
  scores.add(pairs);
  const EdgePasses passes(of, graph, matrices, {});
  std::vector<StreamGraph::Edge> edges = graph.edges();
  Random(11).shuffle(edges);
  edges.resize(std::min<size_t>(edges.size(), 500));
  std::vector<EdgeSet> without(edges.size(), EdgeSet(graph, true));
  std::vector<EdgePasses::Run> runs;
  for (size_t i = 0; i < edges.size(); ++i) {
    without[i].put(edges[i], false);
    runs.push_back({&pairs[0], &without[i]});
  }
  const double clean = passes.plain_scores(pairs, false)[0];
  const std::vector<double> left = passes.scores(runs);
  std::vector<double> estimated, measured;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (std::abs(clean - left[i]) < 1e-5) continue;  // rounding
    estimated.push_back(scores.total(edges[i]));
    measured.push_back(clean - left[i]);
  }
  ASSERT_GT(measured.size(), 10u);
  const double rank = spearman(estimated, measured);
  double off = 0, all = 0;
  for (size_t i = 0; i < measured.size(); ++i) {
    off += std::abs(estimated[i] - measured[i]);
    all += std::abs(measured[i]);
  }
  std::printf("%s: %zu edges, Spearman %.3f, off by %.3f of all effects\n", GetParam(), measured.size(), rank,
              off / all);
  EXPECT_LT(off, 0.1 * all);
  EXPECT_GE(rank, 0.9);
}

}  // namespace
}  // namespace mh

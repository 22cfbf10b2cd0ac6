// Runs of some edges, in every small model among the goldens: every family that is read.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/circuit/edge_passes.h"
#include "multihead/heads/circuit/edge_scores.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

/// Two pairs of other lengths.
std::vector<CircuitPair> pairs_of(const ModelFolder& folder) {
  std::vector<CircuitPair> pairs(2);
  pairs[0].texts.clean.ids = {5, 3, 7, 11, 2, 1};
  pairs[0].texts.corrupt.ids = {5, 8, 7, 4, 2, 1};
  pairs[1].texts.clean.ids = {9, 3, 2, 1};
  pairs[1].texts.corrupt.ids = {6, 3, 2, 1};
  for (CircuitPair& pair : pairs) {
    pair.texts.predicting = 2;
    pair.texts.answer.token = folder.labels ? 0 : 6;
    pair.texts.wrong.token = folder.labels ? 1 : 7;
    if (translates(folder)) pair.texts.target.ids = {2, 9, 4, 8};
  }
  return pairs;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << what << " of run " << i;
}

TEST(EdgesOfFamilies, AllAreTheCleanRunNoneTheCorruptOneAndSomeAreTheSameStepByStep) {
  int models = 0;
  for (const std::filesystem::path& path : golden_models()) {
    SCOPED_TRACE(path.string());
    ModelFolder folder = load_model_folder(path);
    if (folder.gives_vectors_alone()) continue;
    if (folder.labels && folder.labels->names.size() < 2) continue;
    const ScoredModel model(std::move(folder));
    const std::vector<CircuitPair> pairs = pairs_of(model.folder());
    const CircuitTexts texts(model);
    const StreamGraph graph(texts.model());
    const HeadMatrices matrices(graph);
    const EdgePasses passes(texts, graph, matrices, {.max_batch_tokens = 23}),
        steps(texts, graph, matrices, {.max_batch_tokens = 1000, .step_by_step = true});
    const EdgeSet all(graph, true), none(graph, false);
    EdgeSet some(graph, false), most(graph, true);
    Random random(7);
    for (const StreamGraph::Edge& edge : graph.edges()) {
      some.put(edge, random.uniform() < 0.3);
      most.put(edge, random.uniform() < 0.9);
    }
    expect_near(passes.scores(std::vector<EdgePasses::Run>{{&pairs[0], &all}, {&pairs[1], &all}}),
                passes.plain_scores(pairs, false), "all edges");
    expect_near(passes.scores(std::vector<EdgePasses::Run>{{&pairs[0], &none}, {&pairs[1], &none}}),
                passes.plain_scores(pairs, true), "no edges");
    const std::vector<EdgePasses::Run> runs = {
        {&pairs[0], &some}, {&pairs[1], &most}, {&pairs[0], &most}, {&pairs[1], &some}};
    expect_near(passes.scores(runs), steps.scores(runs), "some edges");
    ++models;
  }
  EXPECT_GT(models, 100);
}

}  // namespace
}  // namespace mh

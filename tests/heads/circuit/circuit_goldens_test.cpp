// Scores and effects of edges beside transformers' modules with hooks in double precision (tests/oracles/circuit_goldens.py).
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/circuit/edge_passes.h"
#include "multihead/heads/circuit/edge_scores.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/io/safetensors.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

class CircuitGoldens : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Models, CircuitGoldens,
                         testing::Values("bert/masked", "gemma2/logits_capped", "gpt2/tied",
                                         "llama/tied_grouped", "marian/gelu_f16", "t5/plain"),
                         [](const auto& of) { return test_name_of(of.param); });

/// source: stack, sublayer, head; target: stack, sublayer, part, head.
StreamGraph::Edge edge_of(const StreamGraph& graph, const int64_t* of) {
  const auto of_stack = [&](int64_t stack) -> const Stream& {
    return graph.streams()[static_cast<size_t>(stack)];
  };
  StreamGraph::Edge edge{.source = of_stack(of[0]).embeddings,
                         .target = static_cast<int>(graph.targets().size()) - 1};
  if (of[1] >= 0) {
    edge.source = of_stack(of[0]).sublayers[static_cast<size_t>(of[1])].first_source;
    if (of[2] >= 0) edge.source += static_cast<int>(of[2]);
  }
  if (of[4] >= 0) {
    edge.target =
        graph.targets_of(static_cast<int>(of[3]), static_cast<int>(of[4]), static_cast<TargetKind>(of[5]))
            .first +
        static_cast<int>(of[6]);
  }
  return edge;
}

TEST_P(CircuitGoldens, AreTransformers) {
  const std::string name = GetParam();
  const SafetensorsFile file = SafetensorsFile::open(kGoldens / "circuits.safetensors");
  const auto ids = [&](const char* what) {
    std::vector<int32_t> found;
    for (const int64_t one : file.integers(name + what)) found.push_back(static_cast<int32_t>(one));
    return found;
  };
  const auto numbers = [&](const char* what) {
    std::vector<float> found(static_cast<size_t>(file.shape(name + what).at(0)));
    file.read_floats(name + what, found);
    return found;
  };
  const ScoredModel model(load_model_folder(kGoldens / name));
  std::vector<CircuitPair> pairs(1);
  PatchTexts& texts = pairs[0].texts;
  texts.clean.ids = ids(".clean");
  texts.corrupt.ids = ids(".corrupt");
  if (translates(model.folder())) texts.target.ids = ids(".target");
  const std::vector<int32_t> answers = ids(".answers");
  texts.predicting = answers.at(0);
  texts.answer.token = answers.at(1);
  texts.wrong.token = answers.at(2);

  const CircuitTexts of(model);
  const StreamGraph graph(of.model());
  const HeadMatrices matrices(graph);
  const EdgePasses passes(of, graph, matrices, {});
  EdgeScores scores(of, graph, matrices, {.steps = 3});
  scores.add(pairs);
  const double clean = passes.plain_scores(pairs, false)[0];
  const std::vector<float> ends = numbers(".ends"), effects = numbers(".effects"),
                           estimated = numbers(".scores");
  EXPECT_NEAR(clean, ends.at(0), 2e-5);
  EXPECT_NEAR(passes.plain_scores(pairs, true)[0], ends.at(1), 2e-5);
  const std::vector<int64_t> edges = file.integers(name + ".edges");
  ASSERT_EQ(edges.size(), 7 * effects.size());
  int counting = 0;
  for (size_t i = 0; i < effects.size(); ++i) {
    const StreamGraph::Edge edge = edge_of(graph, &edges[7 * i]);
    SCOPED_TRACE(graph.name(edge));
    ASSERT_TRUE(graph.joins(edge.source, edge.target));
    EdgeSet without(graph, true);
    without.put(edge, false);
    const double effect = clean - passes.scores(std::vector<EdgePasses::Run>{{&pairs[0], &without}})[0];
    EXPECT_NEAR(effect, effects[i], 1e-4);
    EXPECT_NEAR(scores.total(edge), estimated[i], 1e-4);
    counting += std::abs(effects[i]) > 1e-3 ? 1 : 0;
  }
  EXPECT_GT(counting, 5) << "edges that do anything";
}

}  // namespace
}  // namespace mh

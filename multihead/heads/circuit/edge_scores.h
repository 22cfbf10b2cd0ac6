// EdgeScores: what every edge of a model does for its decision, estimated from gradients (edge attribution patching, Syed et al. 2023,
// with integrated gradients, Hanna et al. 2024, "Have faith in faithfulness"):
//
//   score(u -> v) = sum over positions of (z_u(clean) - z_u(corrupt)) * g_v
//
// z_u is what source u writes into its stream, g_v the gradient of score(answer) - score(wrong) by what target v alone reads of the
// stream, the mean over `steps` runs whose embeddings lie between those of the corrupt and of the clean text. It is about
// score(clean) - score(the clean run with this edge corrupt), and exact where the model is linear. Norms are not held: g_v has come
// through those between u and v.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/heads/circuit/circuit_texts.h"
#include "multihead/heads/circuit/head_matrices.h"
#include "multihead/heads/circuit/stream_graph.h"
#include "multihead/heads/sites/site_values.h"

namespace mh {

class EdgeScores {
 public:
  struct Options {
    int64_t steps = 5;
    Sites* sites = nullptr;          // called in all runs, first; may be null
    int64_t max_batch_tokens = 512;  // rows that run together; results depend on it only by rounding
  };
  /// REQUIRES: all of them outlive this.
  EdgeScores(const CircuitTexts& texts, const StreamGraph& graph, const HeadMatrices& matrices,
             const Options& options);

  void add(std::span<const CircuitPair> pairs);
  /// The sum over the pairs that were added.
  double total(const StreamGraph::Edge& edge) const { return totals_[index(edge.source, edge.target)]; }

 private:
  class Batch;
  size_t index(int source, int target) const {
    return static_cast<size_t>(target) * graph_.sources().size() + static_cast<size_t>(source);
  }

  const CircuitTexts& texts_;
  const StreamGraph& graph_;
  const HeadMatrices& matrices_;
  Options options_;
  std::vector<double> totals_;  // [targets, sources]
  Tape tape_{Tape::Mode::kRecordValues};
};

}  // namespace mh

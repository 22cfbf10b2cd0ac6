// CircuitSearch: a small set of edges that keeps a share of a decision, found by running the model with these edges alone.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/base/interval.h"
#include "multihead/heads/circuit/edge_passes.h"
#include "multihead/heads/circuit/heads_circuit.h"

namespace mh {

class CircuitSearch {
 public:
  using Edges = std::vector<StreamGraph::Edge>;
  /// clean, corrupt: the scores of the pairs' texts. REQUIRES: all of them outlive this.
  CircuitSearch(const EdgePasses& passes, const StreamGraph& graph, std::span<const CircuitPair> pairs,
                std::span<const double> clean, std::span<const double> corrupt,
                const CircuitOptions& options);

  /// kept(E) over all pairs, with its interval.
  Interval kept(const EdgeSet& edges) const;
  /// 1 - kept(all edges but these), of each set.
  std::vector<Interval> effects(std::span<const Edges> sets) const;

  struct Found {
    Edges edges = {};  // in the order in which they were given
    int64_t strongest = 0;
    int64_t needed_pairs = 0;
  };
  /// The smallest number of the first edges that keeps the share, without those that are not needed. ranked: all edges, those that count
  /// most first.
  Found small_set(const Edges& ranked) const;
  /// So many of the ranked edges, drawn at random, in their order.
  Edges drawn_of(const Edges& ranked, int64_t count) const;
  /// edges: as many are drawn as these are; circuit: these.
  RandomCircuits random(const Edges& circuit) const;

 private:
  /// s(E) - s(none), by set and by pair, of the first so many. The runs of one pair go together, beside one run of its corrupt text.
  std::vector<std::vector<double>> kept_of(std::span<const EdgeSet> sets, size_t pairs) const;
  /// kept(E) over the pairs that there are numbers of.
  double mean(std::span<const double> kept) const;
  Interval interval(std::span<const double> kept) const;
  double mean(const EdgeSet& edges, size_t pairs) const { return mean(kept_of({&edges, 1}, pairs)[0]); }
  bool keeps_share(const Edges& edges) const;
  /// Leaves out edges without which the rest keeps the share; returns whether it did. left: runs that may still be made.
  bool leave_out(Found& found, int64_t& left) const;

  const EdgePasses& passes_;
  const StreamGraph& graph_;
  std::span<const CircuitPair> pairs_;
  std::span<const double> clean_, corrupt_;
  const CircuitOptions& options_;
};

}  // namespace mh

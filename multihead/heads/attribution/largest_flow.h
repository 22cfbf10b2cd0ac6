// The largest flow from one node of a graph to another through edges with capacities (Ford and Fulkerson 1956), exact up to the
// rounding of double; and attention flow, which asks that of the layers of a model (heads_attribution.h).
#pragma once

#include <vector>

#include "multihead/heads/attribution/layer_mixes.h"

namespace mh {

class FlowGraph {
 public:
  explicit FlowGraph(int nodes) : edges_of_(static_cast<size_t>(nodes)) {}
  /// An edge that takes up to `capacity` >= 0 in this direction.
  void add(int from, int to, double capacity);
  /// Dinic 1970: shortest paths by levels, each level blocked in full. Every call begins with the whole capacities.
  double largest_flow(int from, int to);

 private:
  struct Edge {
    int to;
    double capacity, left;
  };
  bool find_levels(int from, int to);
  double push(int node, int to, double most);

  std::vector<Edge> edges_;  // edge e ^ 1 is the way back of edge e
  std::vector<std::vector<int>> edges_of_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

/// The largest flow from the last rows, of which row i may send rows[i], to each token: source tokens, then target tokens. The
/// capacities are the factors of rollout(kInTurn). Each token has a flow of its own: they do not share the capacities.
std::vector<double> attention_flow(const LayerMixes& mixes, const std::vector<double>& rows);

}  // namespace mh

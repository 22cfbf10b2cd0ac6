#include "multihead/heads/attribution/largest_flow.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>

#include "multihead/base/stop.h"

namespace mh {
namespace {

constexpr double kLeastFlow = 1e-15;  // what is left of a capacity by rounding is no way on

int size_of_stack(const std::vector<LayerMix>& stack) {
  return stack.empty() ? 0 : static_cast<int>(stack[0].self.rows());
}

/// Edges (share I + 1/2 A) from the nodes `above` to the nodes `below`.
void add_mix(FlowGraph& graph, int above, int below, const DoubleMatrix& mix) {
  for (int64_t i = 0; i < mix.rows(); ++i) {
    for (int64_t j = 0; j < mix.cols(); ++j)
      graph.add(above + static_cast<int>(i), below + static_cast<int>(j), 0.5 * mix(i, j));
  }
}
void add_residual(FlowGraph& graph, int above, int below, int count) {
  for (int i = 0; i < count; ++i) graph.add(above + i, below + i, 0.5);
}

}  // namespace

void FlowGraph::add(int from, int to, double capacity) {
  if (capacity <= 0) return;
  edges_of_[static_cast<size_t>(from)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity, capacity});
  edges_of_[static_cast<size_t>(to)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0, 0});
}

bool FlowGraph::find_levels(int from, int to) {
  level_.assign(edges_of_.size(), -1);
  level_[static_cast<size_t>(from)] = 0;
  std::queue<int> open({from});
  while (!open.empty()) {
    const int node = open.front();
    open.pop();
    for (const int e : edges_of_[static_cast<size_t>(node)]) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      if (edge.left <= kLeastFlow || level_[static_cast<size_t>(edge.to)] >= 0) continue;
      level_[static_cast<size_t>(edge.to)] = level_[static_cast<size_t>(node)] + 1;
      open.push(edge.to);
    }
  }
  return level_[static_cast<size_t>(to)] >= 0;
}

double FlowGraph::push(int node, int to, double most) {
  if (node == to) return most;
  double sent = 0;
  for (size_t& next = next_[static_cast<size_t>(node)]; next < edges_of_[static_cast<size_t>(node)].size();
       ++next) {
    const int e = edges_of_[static_cast<size_t>(node)][next];
    Edge& edge = edges_[static_cast<size_t>(e)];
    if (edge.left <= kLeastFlow ||
        level_[static_cast<size_t>(edge.to)] != level_[static_cast<size_t>(node)] + 1)
      continue;
    const double one = push(edge.to, to, std::min(most - sent, edge.left));
    edge.left -= one;
    edges_[static_cast<size_t>(e ^ 1)].left += one;
    sent += one;
    if (most - sent <= kLeastFlow) break;  // the edge may take more
  }
  return sent;
}

double FlowGraph::largest_flow(int from, int to) {
  for (Edge& edge : edges_) edge.left = edge.capacity;
  double sent = 0;
  while (find_levels(from, to)) {
    throw_if_stopped();
    next_.assign(edges_of_.size(), 0);
    const double more = push(from, to, std::numeric_limits<double>::infinity());
    if (more <= kLeastFlow) break;
    sent += more;
  }
  return sent;
}

std::vector<double> attention_flow(const LayerMixes& mixes, const std::vector<double>& rows) {
  const int sources = size_of_stack(mixes.encoder), targets = size_of_stack(mixes.decoder);
  const int encoder_nodes = sources * (static_cast<int>(mixes.encoder.size()) + 1);
  const bool crosses = !mixes.decoder.empty() && mixes.decoder[0].cross.rows() > 0;
  const int steps = static_cast<int>(mixes.decoder.size()) * (crosses ? 2 : 1);
  const int start = encoder_nodes + (targets > 0 ? targets * (steps + 1) : 0);
  FlowGraph graph(start + 1);
  // Nodes of layer l: what it reads; of the number of layers: what the stack gives.
  for (size_t l = 0; l < mixes.encoder.size(); ++l) {
    const int below = sources * static_cast<int>(l);
    add_mix(graph, below + sources, below, mixes.encoder[l].self);
    add_residual(graph, below + sources, below, sources);
  }
  int at = encoder_nodes;
  for (const LayerMix& layer : mixes.decoder) {
    add_mix(graph, at + targets, at, layer.self);
    add_residual(graph, at + targets, at, targets);
    at += targets;
    if (!crosses) continue;
    add_mix(graph, at + targets, encoder_nodes - sources, layer.cross);
    add_residual(graph, at + targets, at, targets);
    at += targets;
  }
  const int top = targets > 0 ? at : encoder_nodes - sources;
  for (size_t i = 0; i < rows.size(); ++i) graph.add(start, top + static_cast<int>(i), rows[i]);
  std::vector<double> flows;
  for (int j = 0; j < sources; ++j) flows.push_back(graph.largest_flow(start, j));
  for (int j = 0; j < targets; ++j) flows.push_back(graph.largest_flow(start, encoder_nodes + j));
  return flows;
}

}  // namespace mh

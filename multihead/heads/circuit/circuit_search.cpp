#include "multihead/heads/circuit/circuit_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <utility>

#include "multihead/base/random.h"

namespace mh {
namespace {

using Edges = CircuitSearch::Edges;

/// Sets of edges that run together.
constexpr int64_t kSetsAtOnce = 32;

Edges first_of(const Edges& ranked, int64_t count) {
  return {ranked.begin(), ranked.begin() + count};
}

/// Those of `edges` that are in a set, in their order.
Edges in_order_of(const Edges& edges, const StreamGraph& graph, const Edges& those) {
  const EdgeSet chosen(graph, those);
  Edges found;
  for (const StreamGraph::Edge& edge : edges) {
    if (chosen.has(edge.source, edge.target)) found.push_back(edge);
  }
  return found;
}

/// The smallest number in (low, high] that fits, where low does not and high does; as if all above one that fits did, too.
template <class Fits>
int64_t bisected(int64_t low, int64_t high, const Fits& fits) {
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

/// So many different edges of the model, in any order (Floyd's algorithm).
Edges some_edges(const StreamGraph& graph, int64_t count, Random& random) {
  const auto all = std::ssize(graph.edges());
  std::unordered_set<int64_t> chosen;
  for (int64_t last = all - count; last < all; ++last) {
    const auto one = static_cast<int64_t>(random.uniform() * static_cast<double>(last + 1));
    if (!chosen.insert(std::min(one, last)).second) chosen.insert(last);
  }
  Edges edges;
  for (const int64_t one : chosen) edges.push_back(graph.edges()[static_cast<size_t>(one)]);
  return edges;
}

}  // namespace

CircuitSearch::CircuitSearch(const EdgePasses& passes, const StreamGraph& graph,
                             std::span<const CircuitPair> pairs, std::span<const double> clean,
                             std::span<const double> corrupt, const CircuitOptions& options)
    : passes_(passes), graph_(graph), pairs_(pairs), clean_(clean), corrupt_(corrupt), options_(options) {}

std::vector<std::vector<double>> CircuitSearch::kept_of(std::span<const EdgeSet> sets, size_t pairs) const {
  std::vector<EdgePasses::Run> runs;
  for (size_t p = 0; p < pairs; ++p) {
    for (const EdgeSet& set : sets) runs.push_back({&pairs_[p], &set});
  }
  const std::vector<double> scores = passes_.scores(runs);
  std::vector<std::vector<double>> kept(sets.size());
  for (size_t i = 0; i < sets.size(); ++i) {
    for (size_t p = 0; p < pairs; ++p) kept[i].push_back(scores[p * sets.size() + i] - corrupt_[p]);
  }
  return kept;
}

double CircuitSearch::mean(std::span<const double> kept) const {
  double found = 0, all = 0;
  for (size_t p = 0; p < kept.size(); ++p) {
    found += kept[p];
    all += clean_[p] - corrupt_[p];
  }
  return found / all;
}

Interval CircuitSearch::interval(std::span<const double> kept) const {
  std::vector<double> all;
  for (size_t p = 0; p < kept.size(); ++p) all.push_back(clean_[p] - corrupt_[p]);
  return jackknife(kept, all);
}

Interval CircuitSearch::kept(const EdgeSet& edges) const {
  return interval(kept_of({&edges, 1}, pairs_.size())[0]);
}

std::vector<Interval> CircuitSearch::effects(std::span<const Edges> sets) const {
  std::vector<Interval> found;
  for (size_t begin = 0; begin < sets.size(); begin += kSetsAtOnce) {
    const size_t end = std::min(begin + static_cast<size_t>(kSetsAtOnce), sets.size());
    std::vector<EdgeSet> others(end - begin, EdgeSet(graph_, true));
    for (size_t i = begin; i < end; ++i) {
      for (const StreamGraph::Edge& edge : sets[i]) others[i - begin].put(edge, false);
    }
    for (const std::vector<double>& kept : kept_of(others, pairs_.size())) {
      found.push_back(interval(kept));
      found.back().mean = 1 - found.back().mean;
    }
    if (options_.progress) options_.progress({"measured", "edges", std::ssize(found), std::ssize(sets)});
  }
  return found;
}

bool CircuitSearch::keeps_share(const Edges& edges) const {
  const Edges joined = EdgeSet(graph_, edges).connected(graph_);
  return !joined.empty() && mean(EdgeSet(graph_, joined), pairs_.size()) >= options_.share;
}

CircuitSearch::Found CircuitSearch::small_set(const Edges& ranked) const {
  const int64_t all = std::ssize(ranked);
  int64_t runs = 0;
  const auto keeps = [&](int64_t count) {
    if (options_.progress) options_.progress({"tried", "circuits", ++runs});
    return count == all || keeps_share(first_of(ranked, count));
  };
  int64_t high = 1, low = 0;
  while (!keeps(high)) {
    low = high;
    high = std::min(2 * high, all);
  }
  Found found{.strongest = bisected(low, high, keeps)};
  const Edges some = first_of(ranked, found.strongest);
  found.edges = in_order_of(some, graph_, EdgeSet(graph_, some).connected(graph_));
  int64_t left = options_.removals;
  while (leave_out(found, left)) {
  }
  return found;
}

bool CircuitSearch::leave_out(Found& found, int64_t& left) const {
  const int64_t edges = std::ssize(found.edges);
  if (left < edges || edges < 2) return false;
  const auto pairs = static_cast<size_t>(std::min<int64_t>(left / edges, std::ssize(pairs_)));
  left -= edges * static_cast<int64_t>(pairs);
  const EdgeSet circuit(graph_, found.edges);
  std::vector<double> without;  // kept of the circuit without each edge
  for (int64_t begin = 0; begin < edges; begin += kSetsAtOnce) {
    const int64_t end = std::min(begin + kSetsAtOnce, edges);
    std::vector<EdgeSet> sets(static_cast<size_t>(end - begin), circuit);
    for (int64_t i = begin; i < end; ++i)
      sets[static_cast<size_t>(i - begin)].put(found.edges[static_cast<size_t>(i)], false);
    for (const std::vector<double>& kept : kept_of(sets, pairs)) without.push_back(mean(kept));
    if (options_.progress) options_.progress({"left out", "edges", end, edges});
  }
  std::vector<size_t> order;  // of those that can go
  for (size_t i = 0; i < without.size(); ++i) {
    if (without[i] >= options_.share) order.push_back(i);
  }
  if (order.empty()) {
    found.needed_pairs = static_cast<int64_t>(pairs);
    return false;
  }
  // Those that change least, up or down, go first.
  const double whole = mean(circuit, pairs);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::abs(without[a] - whole) < std::abs(without[b] - whole);
  });
  const auto rest = [&](int64_t gone) {
    EdgeSet left_in(graph_, found.edges);
    for (int64_t i = 0; i < gone; ++i) left_in.put(found.edges[order[static_cast<size_t>(i)]], false);
    return in_order_of(found.edges, graph_, left_in.connected(graph_));
  };
  // The largest number is one less than the smallest that is too large.
  const int64_t most = std::ssize(order) + 1;
  const int64_t gone =
      bisected(0, most, [&](int64_t count) { return count == most || !keeps_share(rest(count)); }) - 1;
  if (gone == 0) return false;
  found.edges = rest(gone);
  return true;
}

CircuitSearch::Edges CircuitSearch::drawn_of(const Edges& ranked, int64_t count) const {
  Random random(options_.seed);
  return in_order_of(ranked, graph_, some_edges(graph_, count, random));
}

RandomCircuits CircuitSearch::random(const Edges& circuit) const {
  RandomCircuits found{.count = options_.random,
                       .pairs = std::min(options_.random_pairs, static_cast<int64_t>(pairs_.size()))};
  const auto pairs = static_cast<size_t>(found.pairs);
  found.circuit = mean(EdgeSet(graph_, circuit), pairs);
  if (found.count == 0) return found;
  found.most = -std::numeric_limits<double>::infinity();
  Random random(options_.seed);
  double sum = 0;
  for (int64_t begin = 0; begin < found.count; begin += kSetsAtOnce) {
    const int64_t end = std::min(begin + kSetsAtOnce, found.count);
    std::vector<EdgeSet> sets;  // those that are joined; the others keep nothing
    for (int64_t i = begin; i < end; ++i) {
      const Edges some = some_edges(graph_, std::ssize(circuit), random);
      if (const Edges joined = EdgeSet(graph_, some).connected(graph_); !joined.empty())
        sets.emplace_back(graph_, joined);
    }
    std::vector<double> kept(static_cast<size_t>(end - begin) - sets.size());
    for (const std::vector<double>& of_set : kept_of(sets, pairs)) kept.push_back(mean(of_set));
    for (const double one : kept) {
      sum += one;
      found.most = std::max(found.most, one);
      if (one >= found.circuit) ++found.as_faithful;
    }
    if (options_.progress) options_.progress({"ran", "random circuits", end, found.count});
  }
  found.mean = sum / static_cast<double>(found.count);
  return found;
}

}  // namespace mh

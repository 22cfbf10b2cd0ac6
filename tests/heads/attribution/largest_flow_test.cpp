// Flows beside the smallest cut of all, by the theorem of Ford and Fulkerson.
#include "multihead/heads/attribution/largest_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "multihead/base/random.h"

namespace mh {
namespace {

using Capacities = std::vector<std::vector<double>>;

double smallest_cut(const Capacities& capacity, size_t from, size_t to) {
  const size_t nodes = capacity.size();
  double smallest = 1e9;
  for (size_t set = 0; set < (size_t{1} << nodes); ++set) {
    const auto inside = [&](size_t node) { return (set >> node & 1) != 0; };
    if (!inside(from) || inside(to)) continue;
    double cut = 0;
    for (size_t i = 0; i < nodes; ++i)
      for (size_t j = 0; j < nodes; ++j)
        if (inside(i) && !inside(j)) cut += capacity[i][j];
    smallest = std::min(smallest, cut);
  }
  return smallest;
}

FlowGraph graph_of(const Capacities& capacity) {
  FlowGraph graph(static_cast<int>(capacity.size()));
  for (size_t i = 0; i < capacity.size(); ++i)
    for (size_t j = 0; j < capacity.size(); ++j)
      graph.add(static_cast<int>(i), static_cast<int>(j), capacity[i][j]);
  return graph;
}

TEST(LargestFlow, IsTheSmallestCutOfRandomGraphs) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const size_t nodes = 3 + random.below(6);
    Capacities capacity(nodes, std::vector<double>(nodes));
    for (size_t i = 0; i < nodes; ++i)
      for (size_t j = 0; j < nodes; ++j)
        if (i != j && random.uniform() < 0.5) capacity[i][j] = random.uniform();
    FlowGraph graph = graph_of(capacity);
    for (size_t to = 1; to < nodes; ++to)
      ASSERT_NEAR(graph.largest_flow(0, static_cast<int>(to)), smallest_cut(capacity, 0, to), 1e-12)
          << "round " << round << ", to " << to;
  }
}

TEST(LargestFlow, GoesBackOnAPathThatWasTakenTooEarly) {
  // 0 -> 1 -> 2 -> 3 is the shortest way for a greedy search that begins with it; the flow is 2 all the same.
  const Capacities capacity = {{0, 1, 1, 0}, {0, 0, 1, 1}, {0, 0, 0, 1}, {0, 0, 0, 0}};
  EXPECT_EQ(graph_of(capacity).largest_flow(0, 3), 2);
}

DoubleMatrix random_mix(Random& random, int64_t rows, int64_t cols) {
  DoubleMatrix mix(rows, cols);
  for (int64_t i = 0; i < mix.size(); ++i) mix.data()[i] = random.uniform();
  divide_rows_by_sums(mix);
  return mix;
}

TEST(AttentionFlow, IsTheSmallestCutOfTwoLayers) {
  Random random(5);
  LayerMixes mixes;
  for (int layer = 0; layer < 2; ++layer) mixes.encoder.push_back({.self = random_mix(random, 3, 3)});
  Capacities capacity(10, std::vector<double>(10));  // three nodes a layer, and the start
  for (size_t layer = 0; layer < 2; ++layer)
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j)
        capacity[3 * layer + 3 + i][3 * layer + j] =
            0.5 * mixes.encoder[layer].self(static_cast<int64_t>(i), static_cast<int64_t>(j)) +
            (i == j ? 0.5 : 0);
  const std::vector<double> rows = {0.25, 0, 0.75};
  for (size_t i = 0; i < 3; ++i) capacity[9][6 + i] = rows[i];
  const std::vector<double> found = attention_flow(mixes, rows);
  ASSERT_EQ(found.size(), 3u);
  for (size_t j = 0; j < 3; ++j) EXPECT_NEAR(found[j], smallest_cut(capacity, 9, j), 1e-12);
}

TEST(AttentionFlow, OfATranslatorGoesThroughCrossAttention) {
  Random random(7);
  LayerMixes mixes;
  mixes.encoder.push_back({.self = random_mix(random, 3, 3)});
  mixes.decoder.push_back({.self = random_mix(random, 2, 2), .cross = random_mix(random, 2, 3)});
  // Nodes: the source 0 to 2, the encoder's states 3 to 5, the target 6, 7, after self-attention 8, 9, states 10, 11.
  Capacities capacity(12, std::vector<double>(12));
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j)
      capacity[3 + i][j] =
          0.5 * mixes.encoder[0].self(static_cast<int64_t>(i), static_cast<int64_t>(j)) + (i == j ? 0.5 : 0);
  }
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j)
      capacity[8 + i][6 + j] =
          0.5 * mixes.decoder[0].self(static_cast<int64_t>(i), static_cast<int64_t>(j)) + (i == j ? 0.5 : 0);
    for (size_t j = 0; j < 3; ++j)
      capacity[10 + i][3 + j] =
          0.5 * mixes.decoder[0].cross(static_cast<int64_t>(i), static_cast<int64_t>(j));
    capacity[10 + i][8 + i] = 0.5;
  }
  const std::vector<double> found = attention_flow(mixes, {0, 1});
  ASSERT_EQ(found.size(), 5u);
  for (size_t j = 0; j < 5; ++j)
    EXPECT_NEAR(found[j], smallest_cut(capacity, 11, j < 3 ? j : j + 3), 1e-12) << j;
}

}  // namespace
}  // namespace mh

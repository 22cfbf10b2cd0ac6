#include "multihead/heads/measures/average_linkage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "multihead/base/random.h"

namespace mh {
namespace {

using testing::ElementsAre;

/// Of the distances of each point to those after it.
std::vector<double> square_of(const std::vector<double>& pairs, int points) {
  std::vector<double> all(static_cast<size_t>(points * points));
  size_t next = 0;
  for (int i = 0; i < points; ++i) {
    for (int j = i + 1; j < points; ++j, ++next)
      all[static_cast<size_t>(i * points + j)] = all[static_cast<size_t>(j * points + i)] = pairs[next];
  }
  return all;
}

TEST(AverageLinkage, JoinsFourPointsByHand) {
  //   0  1  2  3
  // 0    6  1  8
  // 1       5  2
  // 2          9
  const std::vector<double> distances = square_of({6, 1, 8, 5, 2, 9}, 4);
  const Dendrogram tree = average_linkage(distances, 4);
  ASSERT_EQ(tree.merges.size(), 3u);
  EXPECT_EQ(tree.merges[0].first, 0);
  EXPECT_EQ(tree.merges[0].second, 2);
  EXPECT_EQ(tree.merges[0].height, 1);
  EXPECT_EQ(tree.merges[1].first, 1);
  EXPECT_EQ(tree.merges[1].second, 3);
  EXPECT_EQ(tree.merges[1].height, 2);
  EXPECT_EQ(tree.merges[2].first, 4);
  EXPECT_EQ(tree.merges[2].second, 5);
  EXPECT_EQ(tree.merges[2].height, (6 + 8 + 5 + 9) / 4.0);
  EXPECT_EQ(tree.merges[2].size, 4);
  EXPECT_THAT(tree.order(), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(tree.points_of(5), ElementsAre(1, 3));
  EXPECT_THAT(joined_means(tree, square_of({1, 2, 3, 4, 5, 6}, 4)), ElementsAre(2, 5, (1 + 3 + 4 + 6) / 4.0));
  EXPECT_THAT(kept_clusters(tree, {true, true, false}), ElementsAre(4, 5));
  EXPECT_THAT(kept_clusters(tree, {true, false, false}), ElementsAre(4));
  EXPECT_THAT(kept_clusters(tree, {true, false, true}), ElementsAre(4)) << "not every merge of 6 is kept";
  EXPECT_THAT(kept_clusters(tree, {true, true, true}), ElementsAre(6));
}

TEST(AverageLinkage, IsThatOfScipy) {
  // scipy 1.17.1: scipy.cluster.hierarchy.average(distances).
  const std::vector<double> distances = {0.625, 0.897, 0.776, 0.225, 0.3,   0.874, 0.005,
                                         0.821, 0.797, 0.468, 0.303, 0.278, 0.255, 0.445,
                                         0.505, 0.553, 0.996, 0.793, 0.622, 0.989, 0.215};
  struct Row {
    int a, b;
    double height;
    int size;
  };
  const std::vector<Row> expected = {{1, 2, 0.005, 2},   {5, 6, 0.215, 2},  {0, 4, 0.225, 2},
                                     {7, 8, 0.43025, 4}, {3, 9, 0.6645, 3}, {10, 11, 0.68725, 7}};
  const Dendrogram tree = average_linkage(square_of(distances, 7), 7);
  ASSERT_EQ(tree.merges.size(), expected.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(std::min(tree.merges[k].first, tree.merges[k].second), expected[k].a) << k;
    EXPECT_EQ(std::max(tree.merges[k].first, tree.merges[k].second), expected[k].b) << k;
    EXPECT_NEAR(tree.merges[k].height, expected[k].height, 1e-12);
    EXPECT_EQ(tree.merges[k].size, expected[k].size);
  }
}

TEST(AverageLinkage, HeightsAreTheMeansOfTheirPairsAndRise) {
  constexpr int kPoints = 43;
  Random random(11);
  std::vector<double> pairs(kPoints * (kPoints - 1) / 2);
  for (double& distance : pairs) distance = random.uniform();
  const std::vector<double> distances = square_of(pairs, kPoints);
  const Dendrogram tree = average_linkage(distances, kPoints);
  const std::vector<double> means = joined_means(tree, distances);
  double before = 0;
  for (size_t k = 0; k < tree.merges.size(); ++k) {
    EXPECT_NEAR(tree.merges[k].height, means[k], 1e-12);
    EXPECT_GE(tree.merges[k].height, before - 1e-12);
    before = tree.merges[k].height;
  }
  std::vector<int> order = tree.order();
  std::sort(order.begin(), order.end());
  for (int i = 0; i < kPoints; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(AverageLinkage, TakesOnePointAndNone) {
  const std::vector<double> one{0};
  EXPECT_TRUE(average_linkage(one, 1).merges.empty());
  EXPECT_THAT(average_linkage(one, 1).order(), ElementsAre(0));
  EXPECT_TRUE(kept_clusters(average_linkage(one, 1), {}).empty());
  EXPECT_TRUE(average_linkage({}, 0).order().empty());
}

}  // namespace
}  // namespace mh

#include "multihead/batch/share_evenly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "multihead/base/random.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ShareEvenly, TheDearestGoesFirstAndListsRise) {
  // 7 | 5; then 5 + 4 < 7 + 4, 7 + 3, 9 + 2 < 10 + 2
  EXPECT_THAT(share_evenly(std::vector<double>{3, 7, 5, 4, 2}, 2),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4)));
  EXPECT_THAT(share_evenly(std::vector<double>{1, 1}, 3),
              ElementsAre(ElementsAre(0), ElementsAre(1), IsEmpty()));
  EXPECT_THAT(share_evenly(std::vector<double>{}, 2), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(ShareEvenly, EveryExampleIsInOneListAndNoListIsFarAboveTheMean) {
  Random random(3);
  for (const size_t parts : {1, 2, 3, 4, 7}) {
    std::vector<double> costs(211);
    for (double& cost : costs) cost = 1 + static_cast<double>(random.below(97));
    const auto shares = share_evenly(costs, parts);
    std::vector<int64_t> all;
    double most = 0;
    for (const auto& share : shares) {
      EXPECT_TRUE(std::is_sorted(share.begin(), share.end()));
      all.insert(all.end(), share.begin(), share.end());
      double cost = 0;
      for (const int64_t i : share) cost += costs[static_cast<size_t>(i)];
      most = std::max(most, cost);
    }
    std::sort(all.begin(), all.end());
    std::vector<int64_t> expected(costs.size());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
    const double mean = std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(parts);
    EXPECT_LT(most, mean + 10);
  }
}

}  // namespace
}  // namespace mh

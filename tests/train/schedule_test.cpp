#include "multihead/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mh {
namespace {

TEST(Schedule, RisesToThePeakThenFallsWithTheRoot) {
  const Schedule schedule{.peak = 5e-3, .warmup = 2000};
  EXPECT_DOUBLE_EQ(schedule.learning_rate(1), 5e-3 / 2000);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(1000), 2.5e-3);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(2000), 5e-3);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(8000), 2.5e-3);
}

// Vaswani et al. eq. 3: d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), here with its peak (512 *
// 4000)^-0.5.
TEST(Schedule, IsThePapersWithItsPeak) {
  const Schedule schedule{.peak = 1 / std::sqrt(512.0 * 4000.0), .warmup = 4000};
  for (const int step : {1, 17, 3999, 4000, 4001, 100000}) {
    const double paper =
        std::pow(512.0, -0.5) * std::min(std::pow(step, -0.5), step * std::pow(4000.0, -1.5));
    EXPECT_NEAR(schedule.learning_rate(step), paper, 1e-15);
  }
}

TEST(Schedule, LinearReachesZeroAtItsEnd) {
  const Schedule schedule{.peak = 2, .warmup = 10, .decay = Schedule::Decay::kLinear, .end = 110};
  EXPECT_DOUBLE_EQ(schedule.learning_rate(5), 1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(10), 2);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(60), 1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(110), 0);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(111), 0);
}

TEST(Schedule, WithoutWarmupBeginsAtThePeak) {
  const Schedule schedule{.peak = 1, .warmup = 0};
  EXPECT_DOUBLE_EQ(schedule.learning_rate(1), 1);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(4), 0.5);
}

}  // namespace
}  // namespace mh

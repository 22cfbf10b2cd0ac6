#include "multihead/base/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace mh {
namespace {

TEST(Interval, JackknifeOfEqualFoldsIsTheIntervalOfTheirMeans) {
  // With equal supports the ratio is the mean of the folds' ratios, and the jackknife is the usual standard error.
  const std::vector<int64_t> found{3, 5, 4, 8}, support{10, 10, 10, 10};
  const Interval interval = jackknife(found, support),
                 usual = interval_of(std::vector<double>{.3, .5, .4, .8});
  EXPECT_NEAR(interval.mean, 0.5, 1e-12);
  EXPECT_NEAR(interval.mean, usual.mean, 1e-12);
  EXPECT_NEAR(interval.half, usual.half, 1e-9);
}

TEST(Interval, JackknifeLeavesOutFoldsWithoutSupport) {
  const std::vector<int64_t> found{1, 0, 2}, support{2, 0, 2};
  EXPECT_NEAR(jackknife(found, support).mean, 0.75, 1e-12);
  // Without either fold the ratio is 1 or 1/2: the variance is 1/2 * 2 * (1/4)^2, and t(1) = 12.706.
  EXPECT_NEAR(jackknife(found, support).half, 12.706 * 0.25, 1e-3);
}

TEST(Interval, OneFoldSaysNothing) {
  EXPECT_TRUE(std::isinf(jackknife(std::vector<int64_t>{1, 0}, std::vector<int64_t>{2, 0}).half));
  EXPECT_EQ(jackknife(std::vector<int64_t>{0}, std::vector<int64_t>{0}).mean, 0);
}

TEST(Interval, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_quantile(1), 12.706, 1e-3);
  EXPECT_NEAR(student_quantile(9), 2.262, 1e-3);
  EXPECT_NEAR(student_quantile(9), 2.262, 1e-3) << "the second time it is known";
  EXPECT_NEAR(student_quantile(200), 1.972, 1e-3);
}

TEST(Jackknife, OfSumsIsThatOfCounts) {
  const std::vector<int64_t> found{3, 5, 0, 7}, support{4, 11, 0, 9};
  const std::vector<double> found_sums{3, 5, 0, 7}, support_sums{4, 11, 0, 9};
  const Interval counts = jackknife(found, support), sums = jackknife(found_sums, support_sums);
  EXPECT_EQ(counts.mean, 15.0 / 24);
  EXPECT_EQ(sums.mean, counts.mean);
  EXPECT_EQ(sums.half, counts.half);
}

TEST(Jackknife, OfTwoFoldsByHand) {
  // Without one fold the ratio is that of the other: 0.5 and 0.2, so the variance is 1/2 * 2 * 0.15^2.
  const std::vector<double> found{1, 0.2}, support{2, 1};
  const Interval interval = jackknife(found, support);
  EXPECT_NEAR(interval.mean, 1.2 / 3, 1e-15);
  EXPECT_NEAR(interval.half, student_quantile(1) * 0.15, 1e-12);
}

TEST(Jackknife, OfOneFoldHasNoWidth) {
  const std::vector<double> found{0.3, 0}, support{2, 0};
  EXPECT_EQ(jackknife(found, support).mean, 0.15);
  EXPECT_TRUE(std::isinf(jackknife(found, support).half));
}

}  // namespace
}  // namespace mh

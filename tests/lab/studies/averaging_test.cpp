// 003.5, trained: the bound for one head on matrices whose bound is plain, and verdicts from made-up errors.
#include "lab/studies/unique_heads/averaging.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/studies/unique_heads/claims.h"

namespace mh::unique_heads::averaging {
namespace {

Target diagonal(std::vector<double> p, std::vector<double> r) {
  Target y{Matrix(kContent, kContent), Matrix(kContent, kContent)};
  for (int i = 0; i < kContent; ++i) {
    y.p(i, i) = p[static_cast<size_t>(i)];
    y.r(i, i) = r[static_cast<size_t>(i)];
  }
  return y;
}

TEST(LeastError, IsWhatRankOneMissesOfTheMixture) {
  constexpr double kNear = 1e-6;
  // P = R: the mean of both words will do.
  EXPECT_NEAR(least_error(diagonal({1, 1, 1}, {1, 1, 1})), 0, kNear);
  EXPECT_NEAR(least_error_by_position(diagonal({1, 1, 1}, {1, 1, 1})), 0, kNear);
  // P = 1, R = -1: the mixture is (cos + sin) times the identity, least at either end, 1. Rank 1 misses two of the
  // three squares; weights by position alone miss all three.
  EXPECT_NEAR(least_error(diagonal({1, 1, 1}, {-1, -1, -1})), 2, kNear);
  EXPECT_NEAR(least_error_by_position(diagonal({1, 1, 1}, {-1, -1, -1})), 3, kNear);
  // P has rank 1: scores that depend on x_1 give it. By position alone the least of 4 cos^2 + sin^2.
  EXPECT_NEAR(least_error(diagonal({2, 0, 0}, {0, 1, 0})), 0, kNear);
  EXPECT_NEAR(least_error_by_position(diagonal({2, 0, 0}, {0, 1, 0})), 1, kNear);
  EXPECT_EQ(diagonal({2, 0, 0}, {0, 1, 0}).variance(), 5);
}

/// The best errors of draw 8. Its target, and that of draw 7, whose errors pass, is P = 1, R = -1: the bound is 2, the
/// variance 6.
struct Errors {
  double one_head = 2.1, feed_forward = 2.2, two_heads = 0.001;
};
Claim claim_for(const Errors& errors) {
  const Target y = diagonal({1, 1, 1}, {-1, -1, -1});
  const std::vector<Reached> draws = {
      {.draw = 7, .target = y, .one_head = {3, 2.5, 2, 4}, .feed_forward = {2}, .two_heads = {0}},
      {.draw = 8,
       .target = y,
       .one_head = {5, 2.9, errors.one_head, 2.8},
       .feed_forward = {errors.feed_forward},
       .two_heads = {errors.two_heads}}};
  return claim_of(draws);
}
std::vector<Verdict> verdicts(const Errors& errors) {
  std::vector<Verdict> all;
  for (const Clause& clause : claim_for(errors).clauses) all.push_back(clause.verdict);
  return all;
}

TEST(AveragingClaim, DecidesByTheWorstDrawOnBothSidesOfEachLimit) {
  using enum Verdict;
  const std::vector<Verdict> all_pass = {kPass, kPass, kPass, kPass, kMeasured, kMeasured};
  EXPECT_EQ(verdicts({}), all_pass);
  // 0.97 times the bound is 1.94; one per cent of the variance is 0.06.
  EXPECT_EQ(verdicts({.one_head = 1.95, .feed_forward = 1.95, .two_heads = 0.0599}), all_pass);
  EXPECT_EQ(verdicts({.one_head = 1.93})[1], kFail);
  EXPECT_EQ(verdicts({.one_head = 1.93})[2], kPass);
  EXPECT_EQ(verdicts({.feed_forward = 1.93})[2], kFail);
  EXPECT_EQ(verdicts({.feed_forward = 1.93})[1], kPass);
  EXPECT_EQ(verdicts({.two_heads = 0.0601})[3], kFail);
}

TEST(AveragingClaim, FailsWhereTheBoundIsNothing) {
  const std::vector<Reached> draws = {{.draw = 1,
                                       .target = diagonal({1, 1, 1}, {0.9, 1, 1}),
                                       .one_head = {1},
                                       .feed_forward = {1},
                                       .two_heads = {0}}};
  EXPECT_EQ(claim_of(draws).clauses[0].verdict, Verdict::kFail);
}

TEST(AveragingClaim, ShowsBestAndWorstStartsInPerCentOfTheVariance) {
  const Claim claim = claim_for({});
  const std::vector<std::string> first = {"7", "50.0", "33.33", "50.00", "33.33", "66.67", "33.33", "0.0000"},
                                 second = {"8",     "50.0",  "33.33", "83.33",
                                           "35.00", "83.33", "36.67", "0.0167"};
  ASSERT_EQ(claim.tables.size(), 1u);
  EXPECT_EQ(claim.tables[0].rows, (std::vector{first, second}));
  EXPECT_EQ(claim.clauses[4].measured, "the best of 4 starts has between 1.000 and 1.050 times the bound");
  // (5 - 2.1) / 2
  EXPECT_EQ(claim.clauses[5].measured,
            "the best of 4 is lower than the best of the first 1 by at most 145.0 % of the bound");
}

TEST(AveragingInhibits, GivesEveryDrawEveryStartAndFailsModelsThatWereNotTrained) {
  const Claim claim = unique_heads::averaging_inhibits(std::vector<uint64_t>{3, 5}, 5, 1);
  ASSERT_EQ(claim.tables[0].rows.size(), 2u);
  EXPECT_EQ(claim.tables[0].rows[0][0], "3");
  EXPECT_EQ(claim.tables[0].rows[1][0], "5");
  for (const auto& series : claim.plots[0].series) {
    EXPECT_EQ(series.y.size(), 5u);
    for (const double error : series.y) EXPECT_GT(error, 0);
  }
  EXPECT_EQ(claim.clauses[1].verdict, Verdict::kPass);
  EXPECT_EQ(claim.clauses[3].verdict, Verdict::kFail);
}

}  // namespace
}  // namespace mh::unique_heads::averaging

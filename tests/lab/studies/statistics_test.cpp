// Verdicts of made-up figures, on both sides of each limit.
#include "lab/studies/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "multihead/base/random.h"

namespace mh {
namespace {

using enum Verdict;
using Numbers = std::vector<double>;

TEST(Student, AgreesWithTables) {
  struct Row {
    int degrees;
    double t95, t975, t995;
  };
  // Quantiles of Student's t as tables print them.
  const Row rows[] = {{1, 6.3138, 12.7062, 63.6567},
                      {2, 2.9200, 4.3027, 9.9248},
                      {4, 2.1318, 2.7764, 4.6041},
                      {10, 1.8125, 2.2281, 3.1693},
                      {30, 1.6973, 2.0423, 2.7500}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.degrees);
    EXPECT_NEAR(student_probability(row.t95, row.degrees), 0.95, 1e-5);
    EXPECT_NEAR(student_probability(row.t975, row.degrees), 0.975, 1e-5);
    EXPECT_NEAR(student_probability(row.t995, row.degrees), 0.995, 1e-5);
    EXPECT_NEAR(student_probability(-row.t975, row.degrees), 0.025, 1e-5);
    EXPECT_DOUBLE_EQ(student_probability(0, row.degrees), 0.5);
  }
}

TEST(Intervals, AreStudents) {
  const Interval i = interval_of(Numbers{1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(i.mean, 2.5);
  EXPECT_NEAR(i.half, 3.1824463 * 1.2909944487 / 2, 1e-6);  // t(3) s / sqrt(4)
  EXPECT_DOUBLE_EQ(i.low(), i.mean - i.half);
  EXPECT_DOUBLE_EQ(i.high(), i.mean + i.half);
}

TEST(Intervals, OfOneNumberAreInfiniteAndOfEqualNumbersEmpty) {
  EXPECT_EQ(interval_of(Numbers{7}).mean, 7);
  EXPECT_EQ(interval_of(Numbers{7}).half, std::numeric_limits<double>::infinity());
  EXPECT_EQ(interval_of(Numbers{3, 3, 3}).half, 0);
  EXPECT_EQ(interval_text(interval_of(Numbers{7}), 1), "7.0");
  EXPECT_EQ(interval_text({2.1342, 0.0119}), "2.134 ± 0.012");
}

TEST(Intervals, OfDifferencesPairTheSeeds) {
  // Seeds differ by 10, the two sides by 1 or 2.
  const Numbers a{11, 22, 31}, b{10, 20, 30};
  EXPECT_THAT(paired(a, b), testing::ElementsAre(1, 2, 1));
  EXPECT_DOUBLE_EQ(interval_of(paired(a, b)).mean, 4.0 / 3);
  EXPECT_LT(interval_of(paired(a, b)).half, 2);
}

/// Five numbers with this mean; half of their 95 % interval is 2.7764 sqrt(2.5 / 5) = 1.9632, of their 90 % interval
/// 2.1318 sqrt(2.5 / 5) = 1.5074.
Numbers around(double mean) {
  return {mean - 2, mean - 1, mean, mean + 1, mean + 2};
}

Decision alone(Numbers numbers, Limit limit) {
  const std::vector<Prediction> one{{std::move(numbers), limit}};
  return decide(one).front();
}

TEST(Decide, OneComparisonIsDecidedByItsIntervals) {
  struct Case {
    double mean;
    Limit limit;
    Verdict expected;
  };
  const Case cases[] = {
      {1.97, Limit::above(0), kPass},
      {1.95, Limit::above(0), kUndecided},
      {-1.95, Limit::above(0), kUndecided},
      {-1.97, Limit::above(0), kFail},
      {6.97, Limit::above(5), kPass},
      {6.95, Limit::above(5), kUndecided},
      {-1.97, Limit::below(0), kPass},
      {-1.95, Limit::below(0), kUndecided},
      {1.95, Limit::below(0), kUndecided},
      {1.97, Limit::below(0), kFail},
      {3.03, Limit::below(5), kPass},
      {3.04, Limit::below(5), kUndecided},
      // A margin: the 90 % interval inside, or the 95 % interval outside.
      {0, Limit::within(3), kPass},
      {1.49, Limit::within(3), kPass},
      {1.50, Limit::within(3), kUndecided},
      {-1.49, Limit::within(3), kPass},
      {-1.50, Limit::within(3), kUndecided},
      {4.96, Limit::within(3), kUndecided},
      {4.97, Limit::within(3), kFail},
      {-4.96, Limit::within(3), kUndecided},
      {-4.97, Limit::within(3), kFail},
      {0, Limit::within(1.50), kUndecided},
      {0, Limit::within(1.51), kPass},
  };
  int number = 0;
  for (const Case& one : cases) {
    const Decision d = alone(around(one.mean), one.limit);
    EXPECT_EQ(d.verdict, one.expected) << "case " << number << ", p = " << d.p;
    EXPECT_EQ(d.p <= 0.05, one.expected != kUndecided) << "case " << number;
    EXPECT_NEAR(d.interval.mean, one.mean, 1e-12);
    EXPECT_NEAR(d.interval.half, 1.9632, 1e-4);
    ++number;
  }
}

TEST(Decide, AMeanThatIsFarInsideOrOutsideOfAMarginIsNotLeftOpenByAWideOne) {
  // The same interval: as good as within 3, not within 0.5, and worse than 0.5 only where it is far off.
  EXPECT_EQ(alone(around(0.9), Limit::within(3)).verdict, kPass);
  EXPECT_EQ(alone(around(0.9), Limit::within(0.5)).verdict, kUndecided);
  EXPECT_EQ(alone(around(2.5), Limit::within(0.5)).verdict, kFail);
}

TEST(Decide, OneSeedSaysNothing) {
  for (const Limit& limit : {Limit::above(0), Limit::below(0), Limit::within(1)}) {
    const Decision d = alone({100}, limit);
    EXPECT_EQ(d.verdict, kUndecided);
    EXPECT_EQ(d.p, 1);
    EXPECT_EQ(d.interval.mean, 100);
  }
}

TEST(Decide, EqualNumbersAreOnOneSideOrAtTheLimit) {
  const auto verdict = [](Limit limit) { return alone({1, 1, 1}, limit).verdict; };
  EXPECT_EQ(verdict(Limit::above(0)), kPass);
  EXPECT_EQ(verdict(Limit::above(2)), kFail);
  EXPECT_EQ(verdict(Limit::above(1)), kUndecided);
  EXPECT_EQ(verdict(Limit::below(2)), kPass);
  EXPECT_EQ(verdict(Limit::below(0)), kFail);
  EXPECT_EQ(verdict(Limit::below(1)), kUndecided);
  EXPECT_EQ(verdict(Limit::within(2)), kPass);
  EXPECT_EQ(verdict(Limit::within(0.5)), kFail);
  EXPECT_EQ(verdict(Limit::within(1)), kUndecided);
}

/// Two numbers whose mean is above 0 with this p: t = tan(pi / 2 (1 - p)), Student's t with one degree being
/// Cauchy's distribution.
Numbers with_p(double p) {
  const double t = std::tan(std::numbers::pi / 2 * (1 - p));
  return {t - 1, t + 1};
}

TEST(Decide, AsGoodAsIsTwoOneSidedTestsAndOutsideIsOnEitherSide) {
  // Of two numbers with mean m and error 1, P(beyond a limit at distance t) is 1/2 - atan(t) / pi.
  const auto at = [](double p) { return std::tan(std::numbers::pi * (0.5 - p)); };
  const auto two = [](double mean) { return Numbers{mean - 1, mean + 1}; };
  const double margin = 100;  // the other limit is as good as infinitely far
  for (const double side : {1.0, -1.0}) {
    SCOPED_TRACE(side);
    const Decision inside = alone(two(side * (margin - at(0.04))), Limit::within(margin));
    EXPECT_NEAR(inside.p, 0.04, 1e-9) << "not doubled: both limits must hold";
    EXPECT_EQ(inside.verdict, kPass);
    EXPECT_EQ(alone(two(side * (margin - at(0.06))), Limit::within(margin)).verdict, kUndecided);
    const Decision outside = alone(two(side * (margin + at(0.02))), Limit::within(margin));
    EXPECT_NEAR(outside.p, 0.04, 1e-9) << "doubled: either limit may be left";
    EXPECT_EQ(outside.verdict, kFail);
    EXPECT_EQ(alone(two(side * (margin + at(0.03))), Limit::within(margin)).verdict, kUndecided);
  }
  // The worse of the two limits counts.
  EXPECT_NEAR(alone(two(1), Limit::within(4)).p, 0.5 - std::atan(3) / std::numbers::pi, 1e-9);
  EXPECT_NEAR(alone(two(-1), Limit::within(4)).p, 0.5 - std::atan(3) / std::numbers::pi, 1e-9);
}

/// Of 10,000 draws of five normal numbers with this mean and deviation 1, the share with a verdict.
double share_of(Verdict verdict, double mean, Limit limit) {
  constexpr int kDraws = 10000;
  Random random(20, 5);
  int found = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    Numbers numbers(5);
    for (double& x : numbers) x = mean + random.normal();
    found += alone(numbers, limit).verdict == verdict;
  }
  return static_cast<double>(found) / kDraws;
}

TEST(Decide, IsWrongWithTheLevelWhereTheMeanIsAtALimit) {
  constexpr double kTolerance = 0.009;  // four standard errors of a share of 5 %
  EXPECT_NEAR(share_of(kPass, 3, Limit::within(3)), 0.05, kTolerance) << "as good as, though just not within";
  EXPECT_NEAR(share_of(kFail, 3, Limit::within(3)), 0.025, kTolerance) << "one of the two sides";
  EXPECT_NEAR(share_of(kFail, 0, Limit::within(0)), 0.05, kTolerance) << "either side";
  EXPECT_NEAR(share_of(kPass, 3, Limit::above(3)), 0.025, kTolerance);
  EXPECT_NEAR(share_of(kFail, 3, Limit::above(3)), 0.025, kTolerance);
}

struct Decided {
  std::vector<double> p;
  std::vector<Verdict> verdicts;
};
Decided decided(const std::vector<double>& ps) {
  std::vector<Prediction> questions;
  for (const double p : ps) questions.push_back({with_p(p), Limit::above(0)});
  Decided all;
  for (const Decision& d : decide(questions)) {
    all.p.push_back(d.p);
    all.verdicts.push_back(d.verdict);
  }
  return all;
}

testing::Matcher<std::vector<double>> near(const std::vector<double>& ps) {
  std::vector<testing::Matcher<double>> each;
  for (const double p : ps) each.push_back(testing::DoubleNear(p, 1e-9));
  return testing::ElementsAreArray(each);
}

TEST(Holm, LeavesOneComparisonAsItIs) {
  EXPECT_THAT(decided({0.03}).p, near({0.03}));
  EXPECT_THAT(decided({0.03}).verdicts, testing::ElementsAre(kPass));
}

TEST(Holm, OfTwo) {
  // The smaller times 2, the larger as it is, but at least the smaller one's.
  EXPECT_THAT(decided({0.04, 0.02}).p, near({0.04, 0.04}));
  EXPECT_THAT(decided({0.04, 0.02}).verdicts, testing::ElementsAre(kPass, kPass));
  EXPECT_THAT(decided({0.03, 0.04}).p, near({0.06, 0.06}));
  EXPECT_THAT(decided({0.03, 0.04}).verdicts, testing::ElementsAre(kUndecided, kUndecided))
      << "either would pass alone";
  EXPECT_THAT(decided({0.6, 0.7}).p, near({1, 1}));
}

TEST(Holm, OfThree) {
  // 0.01 * 3, 0.02 * 2, 0.04 * 1
  EXPECT_THAT(decided({0.01, 0.04, 0.02}).p, near({0.03, 0.04, 0.04}));
  // 0.01 * 3, 0.03 * 2, then at least 0.06
  const Decided some = decided({0.04, 0.03, 0.01});
  EXPECT_THAT(some.p, near({0.06, 0.06, 0.03}));
  EXPECT_THAT(some.verdicts, testing::ElementsAre(kUndecided, kUndecided, kPass));
}

TEST(Holm, OfFour) {
  // 0.005 * 4, 0.012 * 3, 0.03 * 2, then at least 0.06
  const Decided all = decided({0.03, 0.005, 0.04, 0.012});
  EXPECT_THAT(all.p, near({0.06, 0.02, 0.06, 0.036}));
  EXPECT_THAT(all.verdicts, testing::ElementsAre(kUndecided, kPass, kUndecided, kPass));
}

TEST(Holm, CountsThoseThatFailAndThoseOfOneSeed) {
  Numbers below = with_p(0.02);
  for (double& x : below) x = -x;
  const std::vector<Prediction> questions{
      {with_p(0.012), Limit::above(0)}, {below, Limit::above(0)}, {{5}, Limit::above(0)}};
  const std::vector<Decision> d = decide(questions);
  EXPECT_NEAR(d[0].p, 0.036, 1e-9);
  EXPECT_NEAR(d[1].p, 0.04, 1e-9);
  EXPECT_EQ(d[2].p, 1);
  EXPECT_EQ(d[0].verdict, kPass);
  EXPECT_EQ(d[1].verdict, kFail);
  EXPECT_EQ(d[2].verdict, kUndecided);
}

TEST(Predictions, FillTheFirstClausesWithoutFigures) {
  Claim claim{.id = "000.7",
              .clauses = {{.statement = "It is there already.", .asked = "1", .measured = "1"},
                          {.statement = "Slices are worse.", .asked = "loss of sliced minus canonical"},
                          {.statement = "Tied heads are as good.", .asked = "BLEU of tied minus free"},
                          {.statement = "What it costs."}}};
  predict(claim, {{around(40), Limit::above(0.5), 1}, {around(0.5), Limit::within(1.5), 2, " points"}});
  const Clause &first = claim.clauses[1], &second = claim.clauses[2];
  EXPECT_EQ(claim.clauses[0].asked, "1");
  EXPECT_EQ(first.statement, "Slices are worse.");
  EXPECT_EQ(first.asked, "loss of sliced minus canonical: above 0.5");
  EXPECT_THAT(first.measured, testing::AllOf(testing::HasSubstr("40.0 ± 2.0, 5 seeds, p "),
                                             testing::HasSubstr("of 2 comparisons")));
  EXPECT_EQ(first.verdict, kPass);
  EXPECT_EQ(second.asked, "BLEU of tied minus free: between -1.5 points and 1.5 points");
  EXPECT_THAT(second.measured, testing::HasSubstr("0.50 ± 1.96 points, 5 seeds, p = 0."));
  EXPECT_EQ(second.verdict, kUndecided);
  EXPECT_EQ(claim.clauses[3].measured, "");
}

TEST(Predictions, OfOneComparisonDoNotSpeakOfHolm) {
  Claim claim{.clauses = {{.statement = "So.", .asked = "loss"}}};
  predict(claim, {{{0.1}, Limit::below(1)}});
  EXPECT_EQ(claim.clauses[0].asked, "loss: below 1");
  EXPECT_THAT(claim.clauses[0].measured,
              testing::AllOf(testing::HasSubstr("0.100, 1 seed"), testing::HasSubstr("p = 1.000"),
                             testing::Not(testing::HasSubstr("Holm"))));
  EXPECT_EQ(claim.clauses[0].verdict, kUndecided);
}

TEST(Prediction, SaysOnWhichSideAMarginIsLeft) {
  Claim claim{.clauses = std::vector<Clause>(3, {.statement = "As good.", .asked = "q"})};
  predict(claim, {{{2, 2.01, 1.99}, Limit::within(1)}});
  predict(claim, {{{-2, -2.01, -1.99}, Limit::within(1)}});
  predict(claim, {{{0.1, -0.1, 0.01}, Limit::within(1)}});
  EXPECT_NE(claim.clauses[0].measured.find("higher than the margin"), std::string::npos);
  EXPECT_NE(claim.clauses[1].measured.find("lower than the margin"), std::string::npos);
  EXPECT_EQ(claim.clauses[2].verdict, Verdict::kPass);
  EXPECT_EQ(claim.clauses[2].measured.find("margin"), std::string::npos);
  EXPECT_EQ(interval_text({-1e-9, 1e-8}), "0.000 ± 0.000");
}

}  // namespace
}  // namespace mh

// What a few seeds say of a mean: its 95 % interval, and the verdict on a limit that was set beforehand.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lab/studies/claim.h"
#include "multihead/base/interval.h"

namespace mh {

/// a_i - b_i: the same seed on both sides. REQUIRES: equal sizes.
std::vector<double> paired(std::span<const double> a, std::span<const double> b);

/// What is asked of a mean.
struct Limit {
  enum class Kind {
    kAbove,   // the mean is above `bound`
    kBelow,   // it is below `bound`
    kWithin,  // it is between -bound and bound: as good as, with this margin
  };
  Kind kind = Kind::kAbove;
  double bound = 0;

  static Limit above(double bound) { return {Kind::kAbove, bound}; }
  static Limit below(double bound) { return {Kind::kBelow, bound}; }
  static Limit within(double margin) { return {Kind::kWithin, margin}; }
};

/// The values of p of several comparisons, corrected (Holm 1979): the k-th smallest of m is multiplied by m - k + 1, and
/// is at least the one before it.
std::vector<double> holm(std::span<const double> p);
/// PASS and FAIL have a corrected p of at most this.
inline constexpr double kLevel = 0.05;

/// What a clause predicts of the mean over seeds of a number or a difference. What the number is, Clause::asked says.
struct Prediction {
  std::vector<double> by_seed;
  Limit limit;
  int digits = 3;
  std::string unit = {};  // " %", " points"
};

struct Decision {
  Verdict verdict = Verdict::kUndecided;
  Interval interval;  // 95 %, of this mean alone
  double p = 1;       // corrected; PASS and FAIL have at most 0.05
};

/// The means of several lists of numbers, each with its limit, decided together.
///   p of one   with P the probability, were the mean at the limit, of numbers at least as far on that side
///              (t test): above or below a limit 2 P, on the side that was asked PASS, on the other FAIL. Within a
///              margin PASS has the larger P of its two limits (two one-sided tests, Schuirmann 1987), FAIL 2 P of
///              the limit that is left
/// A verdict is PASS or FAIL when p, corrected by holm(), is at most kLevel, else UNDECIDED; so all verdicts together are
/// wrong with at most 5 %. One comparison alone is decided by whether its 95 % interval covers the limit; within a margin
/// it passes when its 90 % interval lies inside, and fails when its 95 % interval lies outside.
std::vector<Decision> decide(std::span<const Prediction> predictions);
/// "above 0 nats", "between -0.05 and 0.05".
std::string limit_text(const Limit& limit, const std::string& unit = {});
/// Of as many clauses, the first ones without figures; decided together.
void predict(Claim& claim, const std::vector<Prediction>& predictions);

/// "2.134 ± 0.012"; "2.134" when there is no interval.
std::string interval_text(const Interval& interval, int digits = 3);
/// Of their mean.
std::string interval_text(std::span<const double> numbers, int digits = 3);

}  // namespace mh

// The mean over a few seeds with its 95 % interval, and the verdict that follows from it.
#pragma once

#include <span>
#include <string>

#include "lab/studies/claim.h"

namespace mh {

/// Mean and half the width of its 95 % interval: t(n - 1) * s / sqrt(n) with Student's t; infinite for one
/// number.
struct Interval {
  double mean = 0, half = 0;
  double low() const { return mean - half; }
  double high() const { return mean + half; }
};
Interval interval_of(std::span<const double> numbers);
/// Of a_i - b_i: the same seed on both sides. REQUIRES: equal sizes.
Interval difference_of(std::span<const double> a, std::span<const double> b);

/// PASS when the whole interval lies above (below) the bound, FAIL when it lies wholly on the other side,
/// UNDECIDED else.
Verdict above(const Interval& interval, double bound);
Verdict below(const Interval& interval, double bound);

/// "2.134 ± 0.012"; "2.134" when there is no interval.
std::string interval_text(const Interval& interval, int digits = 3);

}  // namespace mh

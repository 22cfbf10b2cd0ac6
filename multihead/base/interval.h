// Intervals of means, by Student's t.
#pragma once

#include <cstdint>
#include <span>

namespace mh {

/// A mean and half the width of its 95 % interval.
struct Interval {
  double mean = 0, half = 0;
  double low() const { return mean - half; }
  double high() const { return mean + half; }
};

/// t(n - 1) * s / sqrt(n); infinite for one number.
Interval interval_of(std::span<const double> numbers);

/// The ratio sum(found) / sum(support) of counts, or of other sums, in folds, by leaving out one fold at a time (the jackknife,
/// Efron and Stein 1981): with r_i the ratio without fold i, its variance is (n - 1) / n sum (r_i - mean r)^2. Folds without
/// support are left out; with fewer than two the interval is infinite, and without any support the mean is 0. REQUIRES: equal
/// sizes.
Interval jackknife(std::span<const int64_t> found, std::span<const int64_t> support);
Interval jackknife(std::span<const double> found, std::span<const double> support);

/// P(T <= t) of Student's t with so many degrees of freedom (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4).
double student_probability(double t, int degrees);
/// The 97.5 % quantile, half the width of a 95 % interval in standard errors.
double student_quantile(int degrees);

}  // namespace mh

#include "lab/studies/statistics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

namespace mh {
namespace {

/// The 97.5 % quantile of Student's t, by degrees of freedom (Abramowitz and Stegun 1964, table 26.10).
double student(size_t degrees) {
  constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                               2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
  return degrees <= std::size(kTable) ? kTable[degrees - 1] : 1.96 + 2.4 / static_cast<double>(degrees);
}

}  // namespace

Interval interval_of(std::span<const double> numbers) {
  const auto n = static_cast<double>(numbers.size());
  double sum = 0, squares = 0;
  for (const double x : numbers) sum += x;
  const double mean = sum / n;
  for (const double x : numbers) squares += (x - mean) * (x - mean);
  if (numbers.size() < 2) return {mean, std::numeric_limits<double>::infinity()};
  return {mean, student(numbers.size() - 1) * std::sqrt(squares / (n - 1) / n)};
}

Interval difference_of(std::span<const double> a, std::span<const double> b) {
  std::vector<double> differences;
  for (size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  return interval_of(differences);
}

Verdict above(const Interval& interval, double bound) {
  if (interval.low() > bound) return Verdict::kPass;
  return interval.high() < bound ? Verdict::kFail : Verdict::kUndecided;
}

Verdict below(const Interval& interval, double bound) {
  return above({-interval.mean, interval.half}, -bound);
}

std::string interval_text(const Interval& interval, int digits) {
  if (!std::isfinite(interval.half)) return fmt::format("{:.{}f}", interval.mean, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", interval.mean, digits, interval.half, digits);
}

}  // namespace mh

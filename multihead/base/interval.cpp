#include "multihead/base/interval.h"

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "multihead/base/error.h"

namespace mh {

double student_probability(double t, int degrees) {
  // With theta = atan(t / sqrt(n)), P(|T| <= t) is a finite sum of powers of cos(theta).
  const double theta = std::atan(std::abs(t) / std::sqrt(degrees)), cosine = std::cos(theta),
               sine = std::sin(theta);
  double term = degrees % 2 == 0 ? 1 : cosine, sum = degrees == 1 ? 0 : term;
  for (int k = degrees % 2 == 0 ? 2 : 3; k <= degrees - 2; k += 2) {
    term *= cosine * cosine * (k - 1) / k;
    sum += term;
  }
  const double inside = degrees % 2 == 0 ? sine * sum : 2 / std::numbers::pi * (theta + sine * sum);
  return t < 0 ? (1 - inside) / 2 : (1 + inside) / 2;
}

double student_quantile(int degrees) {
  static std::array<std::atomic<double>, 64> known{};  // a report asks for the same one thousands of times
  const auto at = static_cast<size_t>(degrees);
  if (at < known.size() && known[at] > 0) return known[at];
  double low = 0, high = 1000;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (student_probability(middle, degrees) < 0.975 ? low : high) = middle;
  }
  if (at < known.size()) known[at] = low;
  return low;
}

Interval interval_of(std::span<const double> numbers) {
  const auto n = static_cast<double>(numbers.size());
  const double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / n;
  if (numbers.size() < 2) return {mean, std::numeric_limits<double>::infinity()};
  double squares = 0;
  for (const double x : numbers) squares += (x - mean) * (x - mean);
  return {mean, student_quantile(static_cast<int>(numbers.size()) - 1) * std::sqrt(squares / (n - 1) / n)};
}

Interval jackknife(std::span<const int64_t> found, std::span<const int64_t> support) {
  return jackknife(std::vector<double>(found.begin(), found.end()),
                   std::vector<double>(support.begin(), support.end()));
}

Interval jackknife(std::span<const double> found, std::span<const double> support) {
  MH_ASSERT(found.size() == support.size());
  const double all_found = std::accumulate(found.begin(), found.end(), 0.0),
               all_support = std::accumulate(support.begin(), support.end(), 0.0);
  std::vector<double> without;
  for (size_t fold = 0; fold < found.size(); ++fold) {
    const double here = support[fold];
    if (here != 0 && here < all_support) without.push_back((all_found - found[fold]) / (all_support - here));
  }
  const double ratio = all_support > 0 ? all_found / all_support : 0;
  if (without.size() < 2) return {ratio, std::numeric_limits<double>::infinity()};
  const auto n = static_cast<double>(without.size());
  const double mean = std::accumulate(without.begin(), without.end(), 0.0) / n;
  double squares = 0;
  for (const double r : without) squares += (r - mean) * (r - mean);
  return {ratio, student_quantile(static_cast<int>(n) - 1) * std::sqrt((n - 1) / n * squares)};
}

}  // namespace mh

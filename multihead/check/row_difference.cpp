#include "multihead/check/row_difference.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mh {
namespace {

/// So that rows of zeros are alike.
constexpr double kTiny = 1e-30;

}  // namespace

RowDifference row_difference(const CheckedRows& a, ConstMatrixView b) {
  std::vector<double> norms, differences;
  for (size_t i = 0; i < a.size(); ++i) {
    double norm = 0, difference = 0;
    const float* const there = b.row(static_cast<int64_t>(i));
    for (size_t j = 0; j < a[i].size(); ++j) {
      const double value = there[j], off = static_cast<double>(a[i][j]) - value;
      norm += value * value;
      difference += off * off;
    }
    norms.push_back(std::sqrt(norm));
    differences.push_back(std::sqrt(difference));
  }
  RowDifference worst;
  if (norms.empty()) return worst;
  std::vector<double> sorted = norms;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  for (size_t i = 0; i < norms.size(); ++i) {
    const double difference = differences[i] / (std::max(norms[i], *middle) + kTiny);
    if (difference > worst.difference || std::isnan(difference)) worst = {difference, i};
  }
  return worst;
}

}  // namespace mh

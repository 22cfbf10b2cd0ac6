#include "multihead/folders/adapter_evidence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mh {
namespace {

/// Sums over a sample of rows.
struct Products {
  double wd = 0, dd = 0, ww = 0, count = 0;
};

Products products_of(const LowRankSum& sum) {
  constexpr int64_t kSample = int64_t{1} << 18;
  const int64_t step = std::max<int64_t>(1, sum.rows() * sum.cols() / kSample);
  std::vector<float> w(static_cast<size_t>(sum.cols())), d(w.size());
  Products all;
  for (int64_t i = 0; i < sum.rows(); i += step) {
    sum.read_base(i, i + 1, w.data());
    sum.read_product(i, d.data());
    for (size_t j = 0; j < w.size(); ++j) {
      const double weight = static_cast<double>(w[j]), change = static_cast<double>(d[j]);
      all.wd += weight * change;
      all.dd += change * change;
      all.ww += weight * weight;
    }
    all.count += static_cast<double>(w.size());
  }
  return all;
}

}  // namespace

std::optional<bool> has_product_already(const LowRankSums& sums) {
  double squares_0 = 0, squares_1 = 0, modules = 0;
  for (const auto& [tensor, sum] : sums) {
    const Products found = products_of(*sum);
    if (found.dd == 0) continue;  // never trained
    const double c = found.wd / found.dd;
    const double t_squared = std::max(found.ww / found.count / found.dd, 1e-30);
    squares_0 += c * c / t_squared;
    squares_1 += (c - 1) * (c - 1) / t_squared;
    ++modules;
  }
  if (modules == 0) return false;
  constexpr double kLeast = 4, kRatio = 2;
  const double z_0 = std::sqrt(squares_0 / modules), z_1 = std::sqrt(squares_1 / modules);
  if (z_1 > kLeast && z_1 > kRatio * z_0) return false;
  if (z_0 > kLeast && z_0 > kRatio * z_1) return true;
  return std::nullopt;
}

}  // namespace mh

// The cosine of two vectors.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace mh {

/// a . b / (|a| |b|), summed in double; 0 where one of them is zero. REQUIRES: equal sizes.
inline double cosine(std::span<const float> a, std::span<const float> b) {
  double dot = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    dot += x * y;
    of_a += x * x;
    of_b += y * y;
  }
  const double lengths = std::sqrt(of_a) * std::sqrt(of_b);
  return lengths > 0 ? dot / lengths : 0;
}

}  // namespace mh

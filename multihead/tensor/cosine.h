// The cosine of the angle between two vectors.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace mh {

/// In double; 0 if one of them is 0. REQUIRES: equally many numbers.
inline double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    product += x * y, of_a += x * x, of_b += y * y;
  }
  const double lengths = std::sqrt(of_a) * std::sqrt(of_b);
  return lengths > 0 ? product / lengths : 0;
}

}  // namespace mh

// Short loops over numbers that lie side by side, for ops whose time is elsewhere.
#pragma once

#include <cstdint>

namespace mh {

inline float dot(const float* a, const float* b, int64_t size) {
  float sum = 0;
  for (int64_t c = 0; c < size; ++c) sum += a[c] * b[c];
  return sum;
}

/// to += factor * from.
inline void add_scaled(float factor, const float* from, int64_t size, float* to) {
  for (int64_t c = 0; c < size; ++c) to[c] += factor * from[c];
}

}  // namespace mh

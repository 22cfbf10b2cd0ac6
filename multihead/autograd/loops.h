// Short loops over contiguous numbers, for ops in which they take little of the time.
#pragma once

#include <cstdint>

namespace mh {

inline float dot(const float* a, const float* b, int64_t size) {
  constexpr int64_t kLanes = 16;  // separate sums, so that the compiler may use vectors
  float lanes[kLanes] = {};
  int64_t c = 0;
  for (; c + kLanes <= size; c += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[c + lane] * b[c + lane];
  }
  float sum = 0;
  for (; c < size; ++c) sum += a[c] * b[c];
  for (const float lane : lanes) sum += lane;
  return sum;
}

/// to += factor * from.
inline void add_scaled(float factor, const float* from, int64_t size, float* to) {
  for (int64_t c = 0; c < size; ++c) to[c] += factor * from[c];
}

}  // namespace mh

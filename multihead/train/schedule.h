// The learning rate of each update.
#pragma once

#include <cstdint>

namespace mh {

/// Linear warm-up to `peak`, then the inverse square root (Vaswani et al. 2017, eq. 3, with its scale made
/// explicit).
struct Schedule {
  double peak = 5e-4;
  int64_t warmup = 4000;  // updates; 0: begin at the peak and decay as if one update had been warm-up

  /// peak * min(update / warmup, sqrt(warmup / update)). REQUIRES: update >= 1.
  double learning_rate(int64_t update) const;
};

}  // namespace mh

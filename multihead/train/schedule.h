// The learning rate of each update.
#pragma once

#include <cstdint>

namespace mh {

/// Linear warm-up to `peak`, then down.
struct Schedule {
  enum class Decay {
    kInverseSquareRoot,  // Vaswani et al. 2017, eq. 3, with its scale made explicit
    kLinear,  // to 0 at update `end`: for runs whose length is known, the better the shorter they are
  };

  double peak = 5e-4;
  int64_t warmup = 4000;  // updates; 0: begin at the peak and decay as if one update had been warm-up

  Decay decay = Decay::kInverseSquareRoot;
  int64_t end = 0;  // kLinear only

  /// peak * min(update / warmup, sqrt(warmup / update)), or
  /// peak * min(update / warmup, (end - update) / (end - warmup)), never below 0. Throws UsageError
  /// when update < 1.
  double learning_rate(int64_t update) const;
};

}  // namespace mh

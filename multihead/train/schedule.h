// Schedule: the learning rate of each update.
#pragma once

#include <cstdint>

namespace mh {

/// The learning rate rises linearly to `peak` during the warm-up, then it decays.
struct Schedule {
  enum class Decay {
    kInverseSquareRoot,  // Vaswani et al. 2017, eq. 3, with `peak` in place of its constant factor
    kLinear,             // to 0 at update `end`; for runs of known length, above all short ones
  };

  double peak = 5e-4;
  int64_t warmup = 4000;  // updates; 0: begins at the peak and decays as if the warm-up were 1 update

  Decay decay = Decay::kInverseSquareRoot;
  int64_t end = 0;  // for kLinear only

  /// Returns peak * min(update / warmup, sqrt(warmup / update)), or, for kLinear, peak * min(update /
  /// warmup, (end - update) / (end - warmup)), at least 0. Throws UsageError when update < 1.
  double learning_rate(int64_t update) const;
};

}  // namespace mh

// Is one system better than another, or is it the choice of sentences? Paired bootstrap resampling (Koehn
// 2004): draw as many sentences as there are, with replacement, again and again, and look at how BLEU
// spreads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "multihead/evaluate/bleu.h"

namespace mh {

struct BootstrapConfig {
  int32_t samples = 1000;
  uint64_t seed = 12345;
};

struct BootstrapResult {
  double score = 0;       // of all sentences once
  double mean = 0;        // over the samples
  double half_width = 0;  // of the 95 % interval: half the distance of the 2.5 % and the 97.5 % quantile
  /// Against the first system: the share of samples (one added on both sides) whose absolute difference, less
  /// the mean absolute difference, exceeds the difference seen: sacreBLEU's --paired-bs. Empty for the first
  /// system.
  std::optional<double> p_value;
};

/// counts[s][i]: sentence i of system s, from Bleu::counts(); the first system is the one compared with. All
/// systems see the same samples. The same seed gives the same result for any number of threads. Throws UsageError
/// without a system or samples, FormatError when systems differ in length or have no sentences.
std::vector<BootstrapResult> paired_bootstrap(std::span<const std::vector<BleuCounts>> counts,
                                              const BleuConfig& bleu, const BootstrapConfig& config = {});

}  // namespace mh

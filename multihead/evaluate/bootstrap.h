// Paired bootstrap resampling (Koehn 2004): tells whether one system is better than another, or whether the
// difference in BLEU may come from the choice of sentences. It draws as many sentences as the test set has,
// with replacement, again and again, and measures how BLEU spreads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "multihead/evaluate/bleu.h"
#include "multihead/io/config.h"

namespace mh {

struct BootstrapConfig {
  int32_t samples = 1000;
  uint64_t seed = 12345;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Significance by bootstrap resampling";
    v("samples", samples, {.low = 1, .high = 1'000'000},
      {.group = kGroup, .help = "Number of bootstrap samples", .rare = true});
    v("seed", seed, {}, {.group = kGroup, .help = "Seed of the bootstrap samples", .rare = true});
  }
};

struct BootstrapResult {
  double score = 0;       // BLEU of the test set itself
  double mean = 0;        // over the samples
  double half_width = 0;  // of the 95 % interval: half the distance between the 2.5 % and 97.5 % quantiles
  /// The p-value of the difference from the first system, as in sacreBLEU's --paired-bs: (c + 1) /
  /// (samples + 1), where c counts the samples whose absolute difference, minus the mean absolute
  /// difference, exceeds the observed difference. Empty for the first system.
  std::optional<double> p_value;
};

/// counts[s][i]: sentence i of system s, from Bleu::counts(). The other systems are compared with the first
/// one; all get the same samples. The same seed gives the same result for any number of threads. Throws
/// UsageError without a system or samples, FormatError when systems differ in length or have no sentences.
std::vector<BootstrapResult> paired_bootstrap(std::span<const std::vector<BleuCounts>> counts,
                                              const BleuConfig& bleu, const BootstrapConfig& config = {});

}  // namespace mh

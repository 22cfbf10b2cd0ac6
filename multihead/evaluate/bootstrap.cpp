#include "multihead/evaluate/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/base/stop.h"
#include "multihead/base/thread_pool.h"
#include "multihead/io/check_option.h"

namespace mh {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double half_width_of(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  const size_t cut = scores.size() / 40;
  return 0.5 * (scores[scores.size() - cut - 1] - scores[cut]);
}

double p_value_of(const std::vector<double>& baseline, const std::vector<double>& system, double seen) {
  std::vector<double> differences(system.size());
  for (size_t i = 0; i < system.size(); ++i) differences[i] = std::abs(system[i] - baseline[i]);
  const double mean = mean_of(differences);
  // Strictly more: a system compared with itself is not different by chance.
  const auto beyond =
      std::count_if(differences.begin(), differences.end(), [&](double d) { return d - mean > seen; });
  return static_cast<double>(beyond + 1) / static_cast<double>(differences.size() + 1);
}

}  // namespace

std::vector<BootstrapResult> paired_bootstrap(std::span<const std::vector<BleuCounts>> counts,
                                              const BleuConfig& bleu, const BootstrapConfig& config) {
  if (counts.empty()) throw UsageError("bootstrap: no system is given; expected at least one");
  check_settings(config);
  const size_t sentences = counts[0].size();
  for (const auto& system : counts) {
    if (system.size() == sentences && sentences > 0 && sentences <= std::numeric_limits<uint32_t>::max())
      continue;
    throw FormatError(
        fmt::format("bootstrap: systems of {} and {} sentences; all need the same, at least one", sentences,
                    system.size()));
  }
  // scores[system][sample]
  std::vector<std::vector<double>> scores(counts.size(),
                                          std::vector<double>(static_cast<size_t>(config.samples)));
  parallel_for(config.samples, [&](int64_t sample) {
    Random random(config.seed, static_cast<uint64_t>(sample));
    std::vector<BleuCounts> sums(counts.size());
    for (size_t draw = 0; draw < sentences; ++draw) {
      if (draw % 4096 == 0) throw_if_stopped();
      const uint32_t chosen = random.below(static_cast<uint32_t>(sentences));
      for (size_t s = 0; s < counts.size(); ++s) sums[s] += counts[s][chosen];
    }
    for (size_t s = 0; s < counts.size(); ++s) {
      scores[s][static_cast<size_t>(sample)] = bleu_of_counts(sums[s], bleu).score;
    }
  });

  std::vector<BootstrapResult> results(counts.size());
  for (size_t s = 0; s < counts.size(); ++s) {
    BleuCounts sum;
    for (const BleuCounts& sentence : counts[s]) sum += sentence;
    results[s].score = bleu_of_counts(sum, bleu).score;
    results[s].mean = mean_of(scores[s]);
    results[s].half_width = half_width_of(scores[s]);
    if (s > 0)
      results[s].p_value = p_value_of(scores[0], scores[s], std::abs(results[0].score - results[s].score));
  }
  return results;
}

}  // namespace mh

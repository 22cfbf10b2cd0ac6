// What this machine can do at most: float32 operations in a loop of multiply-adds, and bytes read from memory, on
// every thread at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "benchmarks/beside_peer.h"
#include "multihead/base/aligned.h"
#include "multihead/base/thread_pool.h"

namespace mh {

using Sixteen = float __attribute__((vector_size(64), aligned(64)));

// Measured as gcc compiles it; another compiler knows no such attributes.
#if defined(__GNUC__) && !defined(__clang__)
#define MULTIHEAD_FASTEST \
  __attribute__((target_clones("avx512f", "avx2,fma", "default"), optimize("fp-contract=fast")))
#else
#define MULTIHEAD_FASTEST
#endif

// 16 sums of 16 lanes hide the latency of a multiply-add on any machine in use.
MULTIHEAD_FASTEST inline float multiply_adds(int64_t rounds, float factor) {
  Sixteen sums[16];
  for (int i = 0; i < 16; ++i) sums[i] = Sixteen{} + static_cast<float>(i);  // equal ones would be merged
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (auto& sum : sums) sum = sum * factor + factor;
  }
  for (int i = 1; i < 16; ++i) sums[0] += sums[i];
  return sums[0][0];
}

/// Of all threads together.
inline double peak_gflops() {
  constexpr int64_t kRounds = 2'000'000;
  const int threads = thread_count();
  std::vector<float> sums(static_cast<size_t>(threads));
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch watch;
    parallel_for(threads, [&](int64_t t) { sums[static_cast<size_t>(t)] += multiply_adds(kRounds, 0.5f); });
    seconds.push_back(watch.seconds());
  }
  volatile float kept = sums[0];  // or the loop would be left out
  (void)kept;
  return 2.0 * 16 * 16 * kRounds * threads / median(seconds) / 1e9;
}

MULTIHEAD_FASTEST inline float sum_of(const Sixteen* from, int64_t count) {
  Sixteen sums[8] = {};
  for (int64_t i = 0; i < count; i += 8) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) sums[j] += from[i + j];
  }
  for (int i = 1; i < 8; ++i) sums[0] += sums[i];
  return sums[0][0];
}

/// GB/s when all threads read 1 GiB in order.
inline double read_gigabytes() {
  constexpr int64_t kVectors = int64_t{1} << 24, kTasks = 256;
  AlignedBuffer<float> memory(kVectors * 16);
  std::fill_n(memory.data(), memory.size(), 0.5f);  // pages that nobody has written to are one page of zeros
  std::vector<float> sums(kTasks);
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch watch;
    parallel_for(kTasks, [&](int64_t t) {
      const auto* from = reinterpret_cast<const Sixteen*>(memory.data()) + t * (kVectors / kTasks);
      sums[static_cast<size_t>(t)] = sum_of(from, kVectors / kTasks);
    });
    seconds.push_back(watch.seconds());
  }
  volatile float kept = sums[0];
  (void)kept;
  return static_cast<double>(kVectors) * sizeof(Sixteen) / median(seconds) / 1e9;
}

}  // namespace mh

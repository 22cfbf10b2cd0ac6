// Part of rotary positions: the sines and cosines of one (rotated, base, scaling), computed when first
// needed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "multihead/kernels/rotary.h"

namespace mh::detail {

/// Positions come in blocks of 1024, so that a far position costs no memory for those before it. Blocks are
/// only ever added, so a position that was prepared may be read without a lock.
class RotaryTable {
 public:
  RotaryTable(int rotated, double base, const RotaryScaling& scaling)
      : rotated_(rotated),
        base_(base),
        factors_(scaling.factors.begin(), scaling.factors.end()),
        scaling_(scaling) {
    scaling_.factors = factors_;
  }
  ~RotaryTable();
  RotaryTable(const RotaryTable&) = delete;
  RotaryTable& operator=(const RotaryTable&) = delete;

  bool is_for(int rotated, double base, const RotaryScaling& scaling) const {
    return rotated == rotated_ && base == base_ && scaling == scaling_;
  }
  /// Computes the block of `position` if it is missing. May be called by any thread.
  void prepare(int32_t position);
  /// [2, rotated / 2]: cosines, then sines. REQUIRES: prepare(position) came before.
  const float* row(int32_t position) const {
    const float* block = blocks_[static_cast<size_t>(position / kBlock)].load(std::memory_order_acquire);
    return block + int64_t{position % kBlock} * rotated_;
  }

  static constexpr int32_t kBlock = 1024;  // positions

 private:
  const int rotated_;
  const double base_;
  const std::vector<double> factors_;
  RotaryScaling scaling_;  // with its own factors
  std::array<std::atomic<const float*>, kRotaryPositions / kBlock> blocks_{};
};

/// The table of (rotated, base, scaling). The sixteen used last are kept.
std::shared_ptr<RotaryTable> rotary_table(int rotated, double base, const RotaryScaling& scaling);

}  // namespace mh::detail

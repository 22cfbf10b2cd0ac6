// The gradient of a parameter, summed over backward passes. It lies in memory of its own, or in the buffer
// that a trainer keeps for all parameters (gradient_buffer.h).
#pragma once

#include <cstdint>

#include "multihead/base/matrix_view.h"
#include "multihead/tensor/tensor.h"

namespace mh {

class Gradient {
 public:
  Gradient() = default;
  /// A copy of a parameter has no gradient yet.
  Gradient(const Gradient&) {}
  Gradient& operator=(const Gradient&) { return *this; }

  /// Whether a backward pass has added to it.
  bool exists() const { return exists_; }
  /// The matrix to add to; the first call allocates and clears it.
  MatrixView sum(int64_t rows, int64_t cols);
  /// The sum so far. Throws UsageError unless exists().
  MatrixView view() const {
    if (!exists_) throw UsageError("a parameter that no backward pass has reached has no gradient");
    return view_;
  }

  /// From now on the sum lies in `memory`, which is cleared; with null data in memory of its own again.
  /// exists() becomes false.
  void move_to(MatrixView memory);
  /// Forgets the sum, as if there had been no backward pass.
  void forget() { move_to({}); }

 private:
  MatrixView view_;  // of own_ or of the memory of move_to(); empty: none yet
  Tensor own_;
  bool exists_ = false;
};

}  // namespace mh

// The sum of a parameter's gradients: memory of its own, or a part of the buffer that a trainer keeps for all
// parameters together.
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

  /// Whether a backward pass has ever added to it.
  bool exists() const { return exists_; }
  /// Where to add; made and cleared by the first call.
  MatrixView sum(int64_t rows, int64_t cols);
  /// What has been added up. Throws UsageError unless exists().
  MatrixView view() const {
    if (!exists_) throw UsageError("a parameter that no backward pass has reached has no gradient");
    return view_;
  }

  /// From now on the sum lies in `memory`, which is cleared. Null data: in memory of its own again, and none
  /// exists.
  void move_to(MatrixView memory);
  /// As if no backward pass had been.
  void forget() { move_to({}); }

 private:
  MatrixView view_;  // of own_ or of somebody's buffer; empty: none yet
  Tensor own_;
  bool exists_ = false;
};

}  // namespace mh

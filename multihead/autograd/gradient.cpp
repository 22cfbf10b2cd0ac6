#include "multihead/autograd/gradient.h"

#include <algorithm>

namespace mh {

MatrixView Gradient::sum(int64_t rows, int64_t cols) {
  if (view_.data == nullptr) {
    own_ = Tensor(rows, cols);
    view_ = own_.view();
  }
  MH_ASSERT(view_.rows == rows && view_.cols == cols);
  exists_ = true;
  return view_;
}

void Gradient::move_to(MatrixView memory) {
  MH_ASSERT(memory.contiguous());
  own_ = Tensor();
  view_ = memory;
  exists_ = false;
  if (memory.data != nullptr) std::fill_n(memory.data, memory.size(), 0.0f);
}

}  // namespace mh

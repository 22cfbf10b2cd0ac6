// Where the numbers of attention lie in memory: views of heads, and strides of what has a number for each head or score.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "multihead/base/matrix_view.h"

namespace mh {

/// [N, heads * size]: a row for each token. Without the two strides heads lie side by side in a row, and sequences end to
/// end. With both, number c of head h of token i of sequence s is
///   data[s * sequence_stride + h * head_stride + i * stride + c]
/// so torch's [B, heads, T, size] is {{data, B * T, heads * size, size}, T * size, heads * T * size}. Numbers must not
/// overlap; `rows` and `cols` stay those of the matrix.
template <class T>
struct BasicHeadsView : BasicMatrixView<T> {
  /// From a head to the next; 0: the size of a head.
  int64_t head_stride = 0;
  /// From the first token of a sequence to that of the next; 0: their rows lie end to end.
  int64_t sequence_stride = 0;

  using BasicMatrixView<T>::BasicMatrixView;
  BasicHeadsView() = default;
  template <class U, class = std::enable_if_t<std::is_convertible_v<BasicMatrixView<U>, BasicMatrixView<T>>>>
  BasicHeadsView(const BasicMatrixView<U>& view, int64_t of_head = 0,  // NOLINT: implicit on purpose
                 int64_t of_sequence = 0)
      : BasicMatrixView<T>(view), head_stride(of_head), sequence_stride(of_sequence) {}
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
  BasicHeadsView(const BasicHeadsView<U>& other)  // NOLINT: implicit on purpose
      : BasicMatrixView<T>(other), head_stride(other.head_stride), sequence_stride(other.sequence_stride) {}

  /// The first token of a sequence, which is row `row` of all.
  T* sequence(size_t s, int64_t row) const {
    return this->data +
           (sequence_stride == 0 ? row * this->stride : static_cast<int64_t>(s) * sequence_stride);
  }
  int64_t step(int64_t size) const { return head_stride == 0 ? size : head_stride; }
  /// Whether a row has its heads side by side.
  bool side_by_side(int64_t size) const { return head_stride == 0 || head_stride == size; }
  bool plain(int64_t size) const { return side_by_side(size) && sequence_stride == 0; }
};
using HeadsView = BasicHeadsView<float>;
using ConstHeadsView = BasicHeadsView<const float>;

/// Where a number for each head of each token lies: numbers[s * sequence + h * head + i * token]. All 0: [N, heads].
struct NumberStrides {
  int64_t sequence = 0, head = 0, token = 0;

  bool given() const { return sequence != 0 || head != 0 || token != 0; }
};

/// Where a bias for each score lies: elements[s * sequence + h * head + i * query + j], where 0 repeats it.
struct ElementStrides {
  int64_t sequence = 0, head = 0, query = 0;
};

}  // namespace mh

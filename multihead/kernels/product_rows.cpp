#include "multihead/kernels/product_rows.h"

#include <algorithm>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/block_bytes.h"
#include "multihead/kernels/block_panels.h"

namespace mh {

ProductRows ProductRows::rows_between(int64_t begin, int64_t end) const {
  return {.numbers = numbers.rows_between(begin, end),
          .bytes = bytes.low == nullptr ? ByteRows{} : bytes.rows_between(begin, end)};
}

ProductRows product_rows(ConstMatrixView a, const PackedMatrix& b, AlignedBuffer<std::byte>& memory,
                         RoundedBy by) {
  ProductRows rows{.numbers = a};
  if (!b.rounds_rows()) return rows;
  const bool near = b.precision() == Precision::kNear;
  rows.bytes = place_byte_rows(a.rows, a.cols, near, memory.get(byte_rows_bytes(a.rows, a.cols, near)));
  constexpr int64_t kNumbers = 1 << 14;  // of a task
  const int64_t at_once = std::max<int64_t>(1, kNumbers / std::max<int64_t>(1, a.cols));
  if (by == RoundedBy::kCaller || a.rows <= at_once) {
    fill_byte_rows(a, rows.bytes, 0, a.rows);
    return rows;
  }
  parallel_for((a.rows + at_once - 1) / at_once, [&](int64_t task) {
    fill_byte_rows(a, rows.bytes, task * at_once, std::min(a.rows, (task + 1) * at_once));
  });
  return rows;
}

void multiply_small_panel(const ProductRows& a, const PackedMatrix& b, int64_t p, int64_t k0, int64_t depth,
                          MatrixView c, bool add) {
  const BlockType type = b.block_panel(p).type;
  if (b.rounds_rows()) {
    MH_ASSERT(k0 == 0 && depth == b.rows());
    return multiply_block_bytes(a.bytes, type, b.block_data(p), c, add);
  }
  multiply_block_panel(a.numbers.columns_between(k0, k0 + depth), type, b.block_data(p), k0, c, add);
}

}  // namespace mh

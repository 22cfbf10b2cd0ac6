#include "multihead/kernels/product_rows.h"

#include <algorithm>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/block_bytes.h"
#include "multihead/kernels/block_panels.h"
#include "multihead/kernels/channel_panels.h"

namespace mh {

ProductRows ProductRows::rows_between(int64_t begin, int64_t end) const {
  ProductRows some{.numbers = numbers.rows_between(begin, end)};
  if (bytes.low != nullptr) some.bytes = bytes.rows_between(begin, end);
  if (halves.numbers != nullptr) some.halves = halves.rows_between(begin, end);
  if (channels.low != nullptr) some.channels = channels.rows_between(begin, end);
  return some;
}

namespace {

/// fill(begin, end) for all of so many rows.
template <class Fill>
void for_rows(int64_t rows, int64_t numbers, RoundedBy by, const Fill& fill) {
  constexpr int64_t kNumbers = 1 << 14;  // of a task
  const int64_t at_once = std::max<int64_t>(1, kNumbers / std::max<int64_t>(1, numbers));
  if (by == RoundedBy::kCaller || rows <= at_once) return fill(0, rows);
  parallel_for((rows + at_once - 1) / at_once,
               [&](int64_t task) { fill(task * at_once, std::min(rows, (task + 1) * at_once)); });
}

}  // namespace

ProductRows product_rows(ConstMatrixView a, const PackedMatrix& b, AlignedBuffer<std::byte>& memory,
                         RoundedBy by) {
  ProductRows read{.numbers = a};
  if (!b.rounds_rows() || a.rows == 0) return read;
  switch (b.kind()) {
    case PanelKind::kFloat32:
      break;
    case PanelKind::kBlocks: {
      const WideGroups wide = b.precision() == Precision::kNear ? WideGroups::kAll : WideGroups::kLargest;
      read.bytes = place_byte_rows(a.rows, a.cols, memory.get(byte_rows_bytes(a.rows, a.cols)));
      for_rows(a.rows, a.cols, by,
               [&](int64_t begin, int64_t end) { fill_byte_rows(a, wide, read.bytes, begin, end); });
      break;
    }
    case PanelKind::kHalves:
      read.halves = place_half_rows(a.rows, a.cols, memory.get(half_rows_bytes(a.rows, a.cols)));
      for_rows(a.rows, a.cols, by,
               [&](int64_t begin, int64_t end) { fill_half_rows(a, read.halves, begin, end); });
      break;
    case PanelKind::kChannels:
      read.channels = place_channel_rows(a.rows, a.cols, memory.get(channel_rows_bytes(a.rows, a.cols)));
      for_rows(a.rows, a.cols, by,
               [&](int64_t begin, int64_t end) { fill_channel_rows(a, read.channels, begin, end); });
      break;
  }
  return read;
}

void multiply_small_panel(const ProductRows& a, const PackedMatrix& b, int64_t p, int64_t k0, int64_t depth,
                          MatrixView c, bool add) {
  const PackedMatrix::SmallPanel& panel = b.small_panel(p);
  const std::byte* const data = b.small_data(p);
  MH_ASSERT(!b.rounds_rows() || (k0 == 0 && depth == b.rows()));
  switch (b.kind()) {
    case PanelKind::kFloat32:
      MH_ASSERT(false);
      break;
    case PanelKind::kBlocks:
      if (b.rounds_rows()) return multiply_block_bytes(a.bytes, panel.block, data, b.kernel(), c, add);
      return multiply_block_panel(a.numbers.columns_between(k0, k0 + depth), panel.block, data, k0, c, add);
    case PanelKind::kHalves:
      if (b.rounds_rows()) return multiply_half_rows(a.halves, data, c, add);
      return multiply_half_panel(a.numbers.columns_between(k0, k0 + depth), panel.half, data, k0, c, add);
    case PanelKind::kChannels:
      return multiply_channel_panel(a.channels, data, b.kernel(), c, add);
  }
}

}  // namespace mh

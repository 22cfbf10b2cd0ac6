#include "multihead/kernels/block_panels.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "multihead/base/aligned.h"
#include "multihead/base/block_parts.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/block_panels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/block_panel-inl.h"
#include "multihead/kernels/micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

/// use(numbers) for each k of k8 to k8 + 7, in order.
template <int kIn8 = 0, class Block, class Use>
HWY_INLINE void for_eight(const Block& block, int64_t k8, Use& use) {
  if constexpr (kIn8 < 8) {
    Vectors numbers;
    block.template read<kIn8>(k8, numbers);
    use(numbers);
    for_eight<kIn8 + 1>(block, k8, use);
  }
}

/// use(numbers) for each k of [begin, end), multiples of 8, in order.
template <BlockType kType, class Use>
HWY_INLINE void for_numbers(const std::byte* panel, int64_t begin, int64_t end, Use& use) {
  constexpr BlockLayout kLayout = block_layout(kType);
  const int64_t bytes = block_panel_bytes(kType, kLayout.numbers, kPanel);
  for (int64_t k = begin; k < end;) {
    PanelBlock<kType> block(panel + k / kLayout.numbers * bytes);
    const int64_t part_end = std::min(end, (k / kLayout.part + 1) * kLayout.part);
    block.go_to(k % kLayout.numbers / kLayout.part);
    for (; k < part_end; k += 8) for_eight(block, k % kLayout.numbers, use);
  }
}

/// Adds up the sums of one row of C as multiply_tile() does.
struct AddUp {
  const float* a;
  Vector sum[1][kPanelVectors];

  HWY_INLINE void operator()(const Vectors& numbers) {
    const Vector ak = hn::Set(FloatTag(), *a++);
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) sum[0][v] = hn::MulAdd(ak, numbers[v], sum[0][v]);
  }
};

template <BlockType kType>
HWY_NOINLINE void unpack_block(const std::byte* panel, int64_t begin, int64_t end, float* to,
                               int64_t stride) {
  WriteDown write{to, stride};
  for_numbers<kType>(panel, begin, end, write);
}

template <BlockType kType>
void multiply_block(const ConstMatrixView& a, const std::byte* panel, int64_t k0, const MatrixView& c,
                    bool add) {
  const int64_t end = k0 + a.cols, begin8 = k0 / 8 * 8, end8 = (end + 7) / 8 * 8;
  if (a.rows == 1 && begin8 == k0 && end8 == end) {
    AddUp add_up{.a = a.data, .sum = {}};
    for (auto& sum : add_up.sum[0]) sum = hn::Zero(FloatTag());
    for_numbers<kType>(panel, k0, end, add_up);
    return store_tile<1, kPanelVectors>(add_up.sum, c.data, c.stride, c.cols, add);
  }
  thread_local AlignedBuffer<float> window;
  unpack_block<kType>(panel, begin8, end8, window.get((end8 - begin8) * kPanel), kPanel);
  multiply_panel({.data = a.data, .row_stride = a.stride, .k_stride = 1, .rows = a.rows, .depth = a.cols},
                 window.data() + (k0 - begin8) * kPanel, c.data, c.stride, c.cols, add);
}

}  // namespace

void multiply_blocks(const ConstMatrixView& a, BlockType type, const std::byte* panel, int64_t k0,
                     const MatrixView& c, bool add) {
  with_block_type(type, [&]<BlockType kType>() { multiply_block<kType>(a, panel, k0, c, add); });
}

void unpack_blocks(BlockType type, const std::byte* panel, int64_t begin, int64_t end, float* to,
                   int64_t stride) {
  with_block_type(type, [&]<BlockType kType>() { unpack_block<kType>(panel, begin, end, to, stride); });
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(multiply_blocks);
HWY_EXPORT(unpack_blocks);

int64_t block_panel_bytes(BlockType type, int64_t depth, int64_t columns) {
  const BlockLayout layout = block_layout(type);
  const int64_t scales = layout.has_least ? 2 : 1, parts = layout.parts() > 1 ? layout.parts() : 0;
  return depth / layout.numbers * columns *
         (scales * (2 + parts) + layout.numbers * (layout.low_bits + layout.high_bits) / 8);
}

namespace {

/// One column of a block of a panel, a row of so many bytes after the other.
class PanelColumn {
 public:
  PanelColumn(std::byte* block, int64_t column, int64_t columns)
      : row_(block), column_(column), columns_(columns) {}

  void put_half(uint16_t bits) {
    std::memcpy(row_ + 2 * column_, &bits, sizeof bits);
    row_ += 2 * columns_;
  }
  void put_byte(int byte) {
    row_[column_] = static_cast<std::byte>(byte);
    row_ += columns_;
  }
  /// Bits [from, from + bits) of each number: number k = 4 t + i of a lane at bit 8 i + bits t.
  void put_bits(std::span<const uint8_t> numbers, int from, int bits) {
    const size_t in_lane = static_cast<size_t>(32 / bits);
    for (size_t k = 0; k < numbers.size(); k += in_lane) {
      uint32_t lane = 0;
      for (size_t n = 0; n < in_lane; ++n) {
        const uint32_t number = static_cast<uint32_t>(numbers[k + n]) >> from & ((1u << bits) - 1);
        lane |= number << (8 * (n % 4) + static_cast<size_t>(bits) * (n / 4));
      }
      std::memcpy(row_ + 4 * column_, &lane, sizeof lane);
      row_ += 4 * columns_;
    }
  }

 private:
  std::byte* row_;
  int64_t column_, columns_;
};

}  // namespace

void pack_block_panel(const BlockMatrix& blocks, int64_t first, int64_t width, int64_t columns,
                      std::byte* to) {
  const BlockLayout layout = block_layout(blocks.type);
  const int64_t bytes = block_panel_bytes(blocks.type, layout.numbers, columns);
  std::memset(to, 0, static_cast<size_t>(blocks.cols / layout.numbers * bytes));
  for (int64_t column = 0; column < width; ++column) {
    for (int64_t block = 0; block < blocks.cols / layout.numbers; ++block) {
      const BlockParts parts = BlockParts::of(blocks, first + column, block);
      PanelColumn out(to + block * bytes, column, columns);
      out.put_half(parts.d);
      if (layout.has_least) out.put_half(parts.m);
      for (const auto* scales : {&parts.s, &parts.t}) {
        if (layout.parts() == 1 || (scales == &parts.t && !layout.has_least)) break;
        for (int64_t part = 0; part < layout.parts(); ++part) out.put_byte((*scales)[part]);
      }
      const std::span numbers(parts.q, static_cast<size_t>(layout.numbers));
      out.put_bits(numbers, 0, layout.low_bits);
      if (layout.high_bits > 0) out.put_bits(numbers, layout.low_bits, layout.high_bits);
    }
  }
}

void multiply_block_panel(ConstMatrixView a, BlockType type, const std::byte* b, int64_t k0, MatrixView c,
                          bool add) {
  HWY_DYNAMIC_DISPATCH(multiply_blocks)(a, type, b, k0, c, add);
}

void unpack_block_panel(BlockType type, const std::byte* b, int64_t begin, int64_t end, float* to,
                        int64_t stride) {
  MH_ASSERT(begin % 8 == 0 && end % 8 == 0);
  HWY_DYNAMIC_DISPATCH(unpack_blocks)(type, b, begin, end, to, stride);
}

}  // namespace mh
#endif

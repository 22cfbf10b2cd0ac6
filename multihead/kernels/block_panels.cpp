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

#include "multihead/kernels/micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

using Vector = hn::Vec<FloatTag>;
using IntegerTag = hn::RebindToSigned<FloatTag>;
using Vectors = Vector[kPanelVectors];

HWY_INLINE void load_scales(const std::byte* at, Vectors& to) {
  const hn::Rebind<hwy::float16_t, FloatTag> half;
  HWY_UNROLL(4)
  for (int v = 0; v < kPanelVectors; ++v)
    to[v] =
        hn::PromoteTo(FloatTag(), hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(at) + v * kLanes));
}

/// kLanes bytes as integers.
template <class Byte>
HWY_INLINE hn::Vec<IntegerTag> load_integers(const std::byte* at) {
  const hn::Rebind<Byte, FloatTag> bytes;
  return hn::PromoteTo(IntegerTag(), hn::LoadU(bytes, reinterpret_cast<const Byte*>(at)));
}

/// kBits bits from bit kFrom on, at bit kTo of the result. REQUIRES: from < 256.
template <int kBits, int kFrom, int kTo>
HWY_INLINE hn::Vec<IntegerTag> move_bits(hn::Vec<IntegerTag> from) {
  if constexpr (kFrom > kTo) from = hn::ShiftRight<kFrom - kTo>(from);
  if constexpr (kFrom < kTo) from = hn::ShiftLeft<kTo - kFrom>(from);
  if constexpr (kFrom + kBits == 8 && kTo == 0) return from;  // nothing else is left
  return hn::And(from, hn::Set(IntegerTag(), ((1 << kBits) - 1) << kTo));
}

/// Numbers that lie so many bits each in bytes, those of the lowest k in the lowest bits: [numbers * kBits / 8][kPanel] bytes.
template <int kBits>
struct Plane {
  static constexpr int kInByte = 8 / kBits;

  /// Those of k = k8 + kIn8, of vector v, at bit kTo of the result.
  template <int kIn8, int kTo>
  HWY_INLINE static hn::Vec<IntegerTag> read(const std::byte* plane, int64_t k8, int v) {
    const std::byte* const row = plane + (k8 / kInByte + kIn8 / kInByte) * kPanel;
    return move_bits<kBits, kIn8 % kInByte * kBits, kTo>(load_integers<uint8_t>(row + v * kLanes));
  }
};

/// A block of a panel.
template <BlockType kType>
class PanelBlock {
 public:
  static constexpr BlockLayout kLayout = block_layout(kType);

  HWY_INLINE explicit PanelBlock(const std::byte* at) : at_(at) {}

  /// Goes to a part.
  HWY_INLINE void go_to(int64_t part) {
    load_scales(at_, scale_);
    if constexpr (kLayout.has_least) load_scales(at_ + kLeastAt, least_);
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) {
      if constexpr (kLayout.parts() > 1) {
        scale_[v] = hn::Mul(scale_[v], part_scale(kPartScaleAt, part, v));
        if constexpr (kLayout.has_least) least_[v] = hn::Mul(least_[v], part_scale(kPartLeastAt, part, v));
      }
      if constexpr (!kLayout.has_least)
        least_[v] = hn::Mul(scale_[v], hn::Set(FloatTag(), static_cast<float>(-kLayout.offset)));
    }
  }
  /// The numbers of k = k8 + kIn8, k8 a multiple of 8, in the part to which it went.
  template <int kIn8>
  HWY_INLINE void read(int64_t k8, Vectors& numbers) const {
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) {
      auto q = Plane<kLayout.low_bits>::template read<kIn8, 0>(at_ + kLowAt, k8, v);
      if constexpr (kLayout.high_bits > 0)
        q = hn::Or(q, Plane<kLayout.high_bits>::template read<kIn8, kLayout.low_bits>(at_ + kHighAt, k8, v));
      numbers[v] = hn::MulAdd(hn::ConvertTo(FloatTag(), q), scale_[v], least_[v]);  // the product is exact
    }
  }

 private:
  static constexpr int64_t kPartScales = kLayout.parts() > 1 ? kLayout.parts() * kPanel : 0;
  static constexpr int64_t kLeastAt = 2 * kPanel;
  static constexpr int64_t kPartScaleAt = kLeastAt + (kLayout.has_least ? 2 * kPanel : 0);
  static constexpr int64_t kPartLeastAt = kPartScaleAt + kPartScales;
  static constexpr int64_t kLowAt = kPartLeastAt + (kLayout.has_least ? kPartScales : 0);
  static constexpr int64_t kHighAt = kLowAt + kLayout.numbers * kLayout.low_bits / 8 * kPanel;

  HWY_INLINE Vector part_scale(int64_t at, int64_t part, int v) const {
    return hn::ConvertTo(FloatTag(), load_integers<int8_t>(at_ + at + part * kPanel + v * kLanes));
  }

  const std::byte* at_;
  Vectors scale_, least_;
};

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

struct WriteDown {
  float* to;
  HWY_INLINE void operator()(const Vectors& numbers) {
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) hn::Store(numbers[v], FloatTag(), to + v * kLanes);
    to += kPanel;
  }
};

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
  WriteDown write{window.get((end8 - begin8) * kPanel)};
  for_numbers<kType>(panel, begin8, end8, write);
  multiply_panel({.data = a.data, .row_stride = a.stride, .k_stride = 1, .rows = a.rows, .depth = a.cols},
                 window.data() + (k0 - begin8) * kPanel, c.data, c.stride, c.cols, add);
}

}  // namespace

void multiply_blocks(const ConstMatrixView& a, BlockType type, const std::byte* panel, int64_t k0,
                     const MatrixView& c, bool add) {
  switch (type) {
    case BlockType::kQ4_0:
      return multiply_block<BlockType::kQ4_0>(a, panel, k0, c, add);
    case BlockType::kQ4_1:
      return multiply_block<BlockType::kQ4_1>(a, panel, k0, c, add);
    case BlockType::kQ5_0:
      return multiply_block<BlockType::kQ5_0>(a, panel, k0, c, add);
    case BlockType::kQ5_1:
      return multiply_block<BlockType::kQ5_1>(a, panel, k0, c, add);
    case BlockType::kQ8_0:
      return multiply_block<BlockType::kQ8_0>(a, panel, k0, c, add);
    case BlockType::kQ2_K:
      return multiply_block<BlockType::kQ2_K>(a, panel, k0, c, add);
    case BlockType::kQ3_K:
      return multiply_block<BlockType::kQ3_K>(a, panel, k0, c, add);
    case BlockType::kQ4_K:
      return multiply_block<BlockType::kQ4_K>(a, panel, k0, c, add);
    case BlockType::kQ5_K:
      return multiply_block<BlockType::kQ5_K>(a, panel, k0, c, add);
    case BlockType::kQ6_K:
      return multiply_block<BlockType::kQ6_K>(a, panel, k0, c, add);
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(multiply_blocks);

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
  /// Bits [from, from + bits) of each number.
  void put_bits(std::span<const uint8_t> numbers, int from, int bits) {
    const int in_byte = 8 / bits, mask = (1 << bits) - 1;
    for (size_t k = 0; k < numbers.size();) {
      int byte = 0;
      for (int i = 0; i < in_byte; ++i, ++k) byte |= (numbers[k] >> from & mask) << i * bits;
      put_byte(byte);
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
    const std::byte* from = blocks.row(first + column);
    for (int64_t block = 0; block < blocks.cols / layout.numbers; ++block, from += layout.bytes) {
      const BlockParts parts(blocks.type, from);
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

}  // namespace mh
#endif

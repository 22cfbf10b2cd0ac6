#include "multihead/kernels/block_bytes.h"

#include <atomic>
#include <cmath>

#include "multihead/base/aligned.h"
#include "multihead/kernels/block_panels.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/block_bytes.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/block_panel-inl.h"
#include "multihead/kernels/dot_bytes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

/// The parts of a panel, read where they lie.
template <BlockType kType>
class PartsInPlace {
 public:
  static constexpr BlockLayout kLayout = block_layout(kType);

  HWY_INLINE explicit PartsInPlace(const std::byte* panel)
      : at_(panel), bytes_(block_panel_bytes(kType, kLayout.numbers, kPanel)), block_(panel) {}

  /// Goes to the part with number k, the first of it.
  HWY_INLINE void go_to(int64_t k) {
    block_ = PanelBlock<kType>(at_ + k / kLayout.numbers * bytes_);
    first_ = k % kLayout.numbers;
  }
  HWY_INLINE void scales(Vectors& scale, Vectors& least) const {
    block_.read_scales(first_ / kLayout.part, scale, least);
  }
  template <int kIn8>
  HWY_INLINE Integers bytes(int64_t k8, int v) const {
    return block_.template bytes<kIn8>(first_ + k8, v);
  }

 private:
  const std::byte* at_;
  int64_t bytes_, first_ = 0;
  PanelBlock<kType> block_;
};

/// The same unpacked for many rows: of each part its scales and integers, a byte each.
template <BlockType kType>
class PartsInWindow {
 public:
  static constexpr BlockLayout kLayout = block_layout(kType);
  static constexpr int64_t kScales = (kLayout.has_least ? 2 : 1) * kPanel;  // float32
  static constexpr int64_t kPartBytes = 4 * kScales + kLayout.part * kPanel;

  /// Unpacks a panel of so many numbers of k.
  static void unpack(const std::byte* panel, int64_t depth, std::byte* to) {
    PartsInPlace<kType> parts(panel);
    for (int64_t k = 0; k < depth; k += kLayout.part, to += kPartBytes) {
      parts.go_to(k);
      auto* const scales = reinterpret_cast<float*>(to);
      auto* const integers = reinterpret_cast<int32_t*>(to + 4 * kScales);
      Vectors scale, least;
      parts.scales(scale, least);
      HWY_UNROLL(4)
      for (int v = 0; v < kPanelVectors; ++v) {
        hn::Store(scale[v], FloatTag(), scales + v * kLanes);
        if constexpr (kLayout.has_least) hn::Store(least[v], FloatTag(), scales + kPanel + v * kLanes);
      }
      for (int64_t k8 = 0; k8 < kLayout.part; k8 += 8) {
        HWY_UNROLL(4)
        for (int v = 0; v < kPanelVectors; ++v) {
          int32_t* const four = integers + k8 / 4 * kPanel + v * kLanes;
          hn::Store(parts.template bytes<0>(k8, v), IntegerTag(), four);
          hn::Store(parts.template bytes<4>(k8, v), IntegerTag(), four + kPanel);
        }
      }
    }
  }

  HWY_INLINE explicit PartsInWindow(const std::byte* window) : window_(window), at_(window) {}

  HWY_INLINE void go_to(int64_t k) { at_ = window_ + k / kLayout.part * kPartBytes; }
  HWY_INLINE void scales(Vectors& scale, Vectors& least) const {
    const auto* const scales = reinterpret_cast<const float*>(at_);
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) {
      scale[v] = hn::Load(FloatTag(), scales + v * kLanes);
      if constexpr (kLayout.has_least) least[v] = hn::Load(FloatTag(), scales + kPanel + v * kLanes);
    }
  }
  template <int kIn8>
  HWY_INLINE Integers bytes(int64_t k8, int v) const {
    const auto* const integers = reinterpret_cast<const int32_t*>(at_ + 4 * kScales);
    return hn::Load(IntegerTag(), integers + (k8 + kIn8) / 4 * kPanel + v * kLanes);
  }

 private:
  const std::byte *window_, *at_;
};

/// a b + c, rounded once: the portable target's MulAdd() rounds twice.
HWY_INLINE Vector fused(Vector a, Vector b, Vector c) {
#if HWY_TARGET == HWY_SCALAR
  return Vector(std::fma(a.raw, b.raw, c.raw));
#else
  return hn::MulAdd(a, b, c);
#endif
}

template <int kRows>
using RowDots = Integers[kRows][kPanelVectors];

/// dot[i] += sum of four products for numbers k8 + kIn8 of a part, of which row i's bytes are at a[i]. kDots: as in
/// kernels/dot_bytes-inl.h.
template <BlockType kType, bool kDots, int kIn8, int kRows, class Parts>
HWY_INLINE void add_four(const Parts& parts, int64_t k8, const int8_t* const (&a)[kRows],
                         RowDots<kRows>& dot) {
  constexpr BlockLayout kLayout = block_layout(kType);
  using Four = SignedFour<kDots, kLayout.values != nullptr ? 8 : kLayout.low_bits + kLayout.high_bits>;
  Integers q[kPanelVectors];
  HWY_UNROLL(4)
  for (int v = 0; v < kPanelVectors; ++v) q[v] = parts.template bytes<kIn8>(k8, v);
  HWY_UNROLL(3)
  for (int i = 0; i < kRows; ++i) {
    const Four four(a[i] + k8 + kIn8);
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) dot[i][v] = add_dot_of_bytes(dot[i][v], q[v], four);
  }
}

/// dot[i] += sum_k a_k q_kj over a part.
template <BlockType kType, bool kDots, int kRows, class Parts>
HWY_INLINE void add_part(const Parts& parts, const int8_t* const (&a)[kRows], RowDots<kRows>& dot) {
  for (int64_t k8 = 0; k8 < block_layout(kType).part; k8 += 8) {
    add_four<kType, kDots, 0>(parts, k8, a, dot);
    add_four<kType, kDots, 4>(parts, k8, a, dot);
  }
}

/// A tile of kRows rows from row `first` on against all columns.
template <BlockType kType, bool kDots, int kRows, class Parts>
HWY_INLINE void multiply_byte_tile(const ByteRows& a, int64_t first, Parts& parts, const MatrixView& c,
                                   bool add) {
  constexpr BlockLayout kLayout = block_layout(kType);
  constexpr int kOffset = kLayout.offset + PanelBlock<kType>::kAbove;
  const int64_t groups = a.depth / kByteGroup;
  Vector sum[kRows][kPanelVectors];
  HWY_UNROLL(3)
  for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) sum[i][v] = hn::Zero(FloatTag());
  }
  for (int64_t k = 0; k < a.depth; k += kLayout.part) {
    parts.go_to(k);
    RowDots<kRows> dot;
    const int8_t* low[kRows];
    int32_t row_sum[kRows];
    HWY_UNROLL(3)
    for (int i = 0; i < kRows; ++i) {
      low[i] = a.low + (first + i) * a.depth + k;
      const int32_t* const sums = a.sum + 2 * (first + i) * groups + k / 16;
      row_sum[i] = kLayout.part == 16 ? sums[0] : sums[0] + sums[1];
      HWY_UNROLL(4)
      for (int v = 0; v < kPanelVectors; ++v) dot[i][v] = hn::Set(IntegerTag(), -kOffset * row_sum[i]);
    }
    add_part<kType, kDots>(parts, low, dot);
    Vectors scale, least;
    parts.scales(scale, least);
    HWY_UNROLL(3)
    for (int i = 0; i < kRows; ++i) {
      const int64_t group = (first + i) * groups + k / kByteGroup;
      if (a.wide[group] != 0) {
        if constexpr (kRows == 1) {
          // Read from memory again: a compiler that keeps the integers for this rare case writes them to the stack each time.
          std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        RowDots<1> upper;
        for (int v = 0; v < kPanelVectors; ++v) upper[0][v] = hn::Zero(IntegerTag());
        const int8_t* const high[1] = {a.high + (first + i) * a.depth + k};
        add_part<kType, kDots>(parts, high, upper);
        HWY_UNROLL(4)
        for (int v = 0; v < kPanelVectors; ++v) dot[i][v] = hn::Add(dot[i][v], hn::ShiftLeft<8>(upper[0][v]));
      }
      const Vector row_scale = hn::Set(FloatTag(), a.scale[group]);
      const Vector of_least = hn::Set(FloatTag(), static_cast<float>(row_sum[i]));
      HWY_UNROLL(4)
      for (int v = 0; v < kPanelVectors; ++v) {
        const Vector numbers = hn::ConvertTo(FloatTag(), dot[i][v]);
        const Vector r = kLayout.has_least ? fused(numbers, scale[v], hn::Mul(of_least, least[v]))
                                           : hn::Mul(numbers, scale[v]);
        sum[i][v] = fused(row_scale, r, sum[i][v]);
      }
    }
  }
  store_tile<kRows, kPanelVectors>(sum, c.row(first), c.stride, c.cols, add);
}

template <BlockType kType, bool kDots, class Parts>
void multiply_byte_tiles(const ByteRows& a, Parts parts, const MatrixView& c, bool add) {
  constexpr int kMost = 3;  // as many as the registers hold
  int64_t row = 0;
  for (; row + kMost <= a.rows; row += kMost) multiply_byte_tile<kType, kDots, kMost>(a, row, parts, c, add);
  if (a.rows - row == 2) return multiply_byte_tile<kType, kDots, 2>(a, row, parts, c, add);
  if (a.rows - row == 1) multiply_byte_tile<kType, kDots, 1>(a, row, parts, c, add);
}

template <BlockType kType, bool kDots>
HWY_NOINLINE void multiply_bytes_of(const ByteRows& a, const std::byte* panel, const MatrixView& c,
                                    bool add) {
  constexpr int64_t kFew = 3;
  if (a.rows <= kFew) return multiply_byte_tiles<kType, kDots>(a, PartsInPlace<kType>(panel), c, add);
  using Window = PartsInWindow<kType>;
  thread_local AlignedBuffer<std::byte> memory;
  std::byte* const window = memory.get(a.depth / Window::kLayout.part * Window::kPartBytes);
  Window::unpack(panel, a.depth, window);
  multiply_byte_tiles<kType, kDots>(a, Window(window), c, add);
}

template <BlockType kType>
void multiply_bytes_with(const ByteRows& a, const std::byte* panel, [[maybe_unused]] ProductKernel kernel,
                         const MatrixView& c, bool add) {
  if constexpr (kHasPairs) {
    if (has_byte_dots(kernel)) return multiply_bytes_of<kType, true>(a, panel, c, add);
  }
  multiply_bytes_of<kType, false>(a, panel, c, add);
}

}  // namespace

void multiply_block_bytes(const ByteRows& a, BlockType type, const std::byte* panel, ProductKernel kernel,
                          const MatrixView& c, bool add) {
  with_block_type(type, [&]<BlockType kType>() { multiply_bytes_with<kType>(a, panel, kernel, c, add); });
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(multiply_block_bytes);

void multiply_block_bytes(const ByteRows& a, BlockType type, const std::byte* b, ProductKernel kernel,
                          MatrixView c, bool add) {
  MH_ASSERT(a.rows == c.rows && is_int8(kernel) && a.depth % block_layout(type).numbers == 0);
  HWY_DYNAMIC_DISPATCH(multiply_block_bytes)(a, type, b, kernel, c, add);
}

}  // namespace mh
#endif

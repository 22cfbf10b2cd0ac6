// The inner loop of every product: a tile of kTileRows rows x kPanel columns of C in registers, one pass over
// k. Per-target code: include after highway.h inside a foreach_target source.

#if defined(MULTIHEAD_KERNELS_MICRO_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_MICRO_KERNEL_INL_H_
#undef MULTIHEAD_KERNELS_MICRO_KERNEL_INL_H_
#else
#define MULTIHEAD_KERNELS_MICRO_KERNEL_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

namespace hn = hwy::HWY_NAMESPACE;

// 16-lane and 4-lane machines have 32 registers: 6 x 4 accumulators, 4 of B, 1 of A. AVX2 has 16: 6 x 2 + 2
// + 1.
#if HWY_TARGET == HWY_AVX2
inline constexpr int kPanelVectors = 2;
#else
inline constexpr int kPanelVectors = 4;
#endif
using FloatTag = hn::ScalableTag<float>;
inline constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));
inline constexpr int64_t kPanel = kPanelVectors * kLanes;
inline constexpr int64_t kTileRows = 6;
// k is cut into even blocks of at most this size, so that a panel's block (at most 96 KiB) stays in the
// second-level cache beside A's rows.
inline constexpr int64_t kDepth = 384;
/// Numbers of k of a block. Where all have whole groups of 32, so have the blocks: panels of a file's blocks are not cut
/// within one.
[[maybe_unused]] inline int64_t block_of_depth(int64_t depth) {
  constexpr int64_t kGroup = 32;
  const int64_t blocks = std::max<int64_t>(1, (depth + kDepth - 1) / kDepth);
  const int64_t group = depth % kGroup == 0 ? kGroup : 1, share = (depth + blocks - 1) / blocks;
  return std::max(group, (share + group - 1) / group * group);
}
// A matrix that comes from memory for a few rows is asked for so many numbers of k ahead: the processor alone looks
// less far (8 rows of A on a Xeon: 60 -> 75 GFLOP/s). For one row it is enough.
inline constexpr int64_t kAhead = 28;
inline constexpr int64_t kCacheLineFloats = 16;
// From so many rows on the next panel is asked for while they pass over this one, a line in kSteps numbers of k: sixteen tiles
// ask for all of it. Its first tile then need not wait for memory, and the others have fewer loads (MiniLM on a Xeon: 1.05).
inline constexpr int64_t kRowsThatAsk = 48;
inline constexpr int64_t kSteps = 4;

/// What a tile asks memory for while it multiplies by row k of a panel, which lies at b: rows of the same panel.
template <int kVectors>
struct AskForThisPanel {
  HWY_INLINE void operator()(int64_t /*k*/, const float* b) {
    HWY_UNROLL(4)
    for (int64_t line = 0; line < kVectors * kLanes; line += kCacheLineFloats)
      hwy::Prefetch(b + kAhead * kPanel + line);
  }
};

/// Or the numbers [at, end) that are read after the panel.
struct AskForNextPanel {
  const float* at = nullptr;
  const float* end = nullptr;

  HWY_INLINE void operator()(int64_t k, const float* /*b*/) {
    if (k % kSteps != 0 || at >= end) return;
    hwy::Prefetch(at);
    at += kCacheLineFloats;
  }
};

/// Or nothing.
struct AskForNothing {
  HWY_INLINE void operator()(int64_t /*k*/, const float* /*b*/) {}
};

/// A as the tile reads it: element (i, k) is data[i * row_stride + k * k_stride]. It is read where it lies: a copy would be
/// loaded in one piece just after it was stored in several, which waits for those.
struct LeftFactor {
  const float* data;
  int64_t row_stride;
  int64_t k_stride;
  int64_t rows;
  int64_t depth;  // numbers of k
};

/// Writes rows of a panel, one so many numbers after the other.
struct WriteDown {
  float* to;
  int64_t stride;

  HWY_INLINE void operator()(const hn::Vec<FloatTag> (&numbers)[kPanelVectors]) {
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) hn::StoreU(numbers[v], FloatTag(), to + v * kLanes);
    to += stride;
  }
};

// Writes a tile's sums to C, or adds them.
template <int kRows, int kVectors>
HWY_INLINE void store_tile(const hn::Vec<FloatTag> (&sum)[kRows][kVectors], float* HWY_RESTRICT c,
                           int64_t c_stride, int64_t width, bool add) {
  const FloatTag d;
  if (width == kVectors * kLanes) {
    HWY_UNROLL(8)
    for (int i = 0; i < kRows; ++i) {
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        float* to = c + i * c_stride + v * kLanes;
        hn::StoreU(add ? hn::Add(sum[i][v], hn::LoadU(d, to)) : sum[i][v], d, to);
      }
    }
    return;
  }
  HWY_ALIGN float row[kPanel];
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) hn::Store(sum[i][v], d, row + v * kLanes);
    float* to = c + i * c_stride;
    for (int64_t j = 0; j < width; ++j) to[j] = add ? to[j] + row[j] : row[j];
  }
}

// One tile: kRows rows of A against the first kVectors vectors of a panel b [depth, kPanel]; `width` columns
// of C are written.
template <int kRows, int kVectors, class Ask>
HWY_INLINE Ask multiply_tile(const LeftFactor& a, int64_t row, const float* HWY_RESTRICT b,
                             float* HWY_RESTRICT c, int64_t c_stride, int64_t width, bool add, Ask ask) {
  const FloatTag d;
  using V = hn::Vec<FloatTag>;
  V sum[kRows][kVectors];
  HWY_UNROLL(8)
  for (int i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
  }
  const float* rows[kRows];
  for (int i = 0; i < kRows; ++i) rows[i] = a.data + (row + i) * a.row_stride;
  int64_t offset = 0;
  for (int64_t k = 0; k < a.depth; ++k) {
    V bv[kVectors];
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) bv[v] = hn::Load(d, b + v * kLanes);
    ask(k, b);
    HWY_UNROLL(8)
    for (int i = 0; i < kRows; ++i) {
      const V ai = hn::Set(d, rows[i][offset]);
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(ai, bv[v], sum[i][v]);
    }
    b += kPanel;
    offset += a.k_stride;
  }
  store_tile<kRows, kVectors>(sum, c, c_stride, width, add);
  return ask;
}

template <int kRows, int kVectors>
HWY_INLINE void multiply_tile(const LeftFactor& a, int64_t row, const float* HWY_RESTRICT b,
                              float* HWY_RESTRICT c, int64_t c_stride, int64_t width, bool add) {
  using Ask = std::conditional_t<(kRows > 1), AskForThisPanel<kVectors>, AskForNothing>;
  multiply_tile<kRows, kVectors>(a, row, b, c, c_stride, width, add, Ask());
}

// Seven or eight rows against one half of the columns after the other: B is read once. As tiles of six and two rows they
// would read it again, and while they do so nothing comes from memory. A function of its own: among the other tiles gcc keeps
// the rows' addresses in vector registers, and getting them from there costs a tenth.
template <int kRows, int kVectors>
HWY_NOINLINE void multiply_halves(const LeftFactor& a, int64_t row, const float* HWY_RESTRICT b, float* c,
                                  int64_t c_stride, int64_t width, bool add) {
  constexpr int kHalf = std::max(1, kVectors / 2);
  for (int v = 0; v < kVectors && v * kLanes < width; v += kHalf) {
    const int64_t column = v * kLanes;
    multiply_tile<kRows, kHalf>(a, row, b + column, c + column, c_stride,
                                std::min(width - column, kHalf * kLanes), add);
  }
}

template <int kVectors>
HWY_INLINE void multiply_vectors(const LeftFactor& a, int64_t row, const float* HWY_RESTRICT b, float* c,
                                 int64_t c_stride, int64_t width, bool add) {
  for (; a.rows - row > kTileRows + 2 || a.rows - row == kTileRows; row += kTileRows) {
    multiply_tile<kTileRows, kVectors>(a, row, b, c, c_stride, width, add);
    c += kTileRows * c_stride;
  }
  switch (a.rows - row) {
    case 8:
      return multiply_halves<8, kVectors>(a, row, b, c, c_stride, width, add);
    case 7:
      return multiply_halves<7, kVectors>(a, row, b, c, c_stride, width, add);
    case 5:
      return multiply_tile<5, kVectors>(a, row, b, c, c_stride, width, add);
    case 4:
      return multiply_tile<4, kVectors>(a, row, b, c, c_stride, width, add);
    case 3:
      return multiply_tile<3, kVectors>(a, row, b, c, c_stride, width, add);
    case 2:
      return multiply_tile<2, kVectors>(a, row, b, c, c_stride, width, add);
    case 1:
      return multiply_tile<1, kVectors>(a, row, b, c, c_stride, width, add);
    default:
      return;
  }
}

/// C (+)= A b for one panel and the rows of A from `row` on, whose first is C's first.
[[maybe_unused]] HWY_NOINLINE void multiply_panel(const LeftFactor& a, const float* HWY_RESTRICT b, float* c,
                                                  int64_t c_stride, int64_t width, bool add,
                                                  int64_t row = 0) {
  // Narrow products (the 32 columns of a small head) use half a panel.
  constexpr int kHalf = kPanelVectors / 2;
  if (width <= kHalf * kLanes) return multiply_vectors<kHalf>(a, row, b, c, c_stride, width, add);
  multiply_vectors<kPanelVectors>(a, row, b, c, c_stride, width, add);
}

/// C [a.rows, width] (+)= A b for one panel and kRowsThatAsk rows or more, before a panel that comes from memory.
[[maybe_unused]] HWY_NOINLINE void multiply_panel_before(AskForNextPanel next, const LeftFactor& a,
                                                         const float* HWY_RESTRICT b, float* c,
                                                         int64_t c_stride, int64_t width, bool add) {
  int64_t row = 0;
  for (; a.rows - row >= kTileRows; row += kTileRows) {
    next = multiply_tile<kTileRows, kPanelVectors>(a, row, b, c, c_stride, width, add, next);
    c += kTileRows * c_stride;
  }
  multiply_panel(a, b, c, c_stride, width, add, row);
}

}  // namespace
}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#include "multihead/kernels/channel_panels.h"

#include "multihead/base/aligned.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/channel_panels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/dot_bytes-inl.h"
#include "multihead/kernels/micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

using Vector = hn::Vec<FloatTag>;
using IntegerTag = hn::RebindToSigned<FloatTag>;
using Integers = hn::Vec<IntegerTag>;
using BitsTag = hn::RebindToUnsigned<FloatTag>;

constexpr int kWeightBits = 8;
constexpr int32_t kOffset = 128;  // u - w

/// A tile of kRows rows from row `first` on against all columns. kDots: as in kernels/dot_bytes-inl.h.
template <bool kDots, int kRows>
HWY_NOINLINE void multiply_channel_tile(const ChannelRows& a, int64_t first, const std::byte* panel,
                                        const MatrixView& c, bool add) {
  const int8_t* low[kRows];
  Integers dot[kRows][kPanelVectors];
  HWY_UNROLL(8)
  for (int i = 0; i < kRows; ++i) {
    low[i] = a.low + (first + i) * a.depth;
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) dot[i][v] = hn::Set(IntegerTag(), -kOffset * a.sum[first + i]);
  }
  const auto* four = reinterpret_cast<const int32_t*>(panel);
  for (int64_t k = 0; k < a.depth; k += 4, four += kPanel) {
    Integers u[kPanelVectors];
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) u[v] = hn::LoadU(IntegerTag(), four + v * kLanes);
    HWY_UNROLL(8)
    for (int i = 0; i < kRows; ++i) {
      const SignedFour<kDots, kWeightBits> ai(low[i] + k);
      HWY_UNROLL(4)
      for (int v = 0; v < kPanelVectors; ++v) dot[i][v] = add_dot_of_bytes(dot[i][v], u[v], ai);
    }
  }
  const auto* const columns = reinterpret_cast<const float*>(four);
  Vector y[kRows][kPanelVectors];
  HWY_UNROLL(8)
  for (int i = 0; i < kRows; ++i) {
    const Vector row = hn::Set(FloatTag(), a.scale[first + i]);
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) {
      const Vector scale = hn::Mul(row, hn::LoadU(FloatTag(), columns + v * kLanes));
      // + 0, lest a compiler makes one instruction, which rounds once, of this product and a sum behind it.
      y[i][v] = hn::MulAdd(hn::ConvertTo(FloatTag(), dot[i][v]), scale, hn::Zero(FloatTag()));
    }
  }
  store_tile<kRows, kPanelVectors>(y, c.row(first), c.stride, c.cols, add);
}

template <bool kDots, int kRows = kTileRows>
HWY_INLINE void multiply_channel_rows(const ChannelRows& a, int64_t first, int64_t rows,
                                      const std::byte* panel, const MatrixView& c, bool add) {
  if (rows == kRows) return multiply_channel_tile<kDots, kRows>(a, first, panel, c, add);
  if constexpr (kRows > 1) multiply_channel_rows<kDots, kRows - 1>(a, first, rows, panel, c, add);
}

template <bool kDots>
void multiply_channels_with(const ChannelRows& a, const std::byte* panel, const MatrixView& c, bool add) {
  for (int64_t row = 0, tiles = (a.rows + kTileRows - 1) / kTileRows; row < a.rows; --tiles) {
    const int64_t rows = (a.rows - row + tiles - 1) / tiles;  // even: 7 as 4 and 3
    multiply_channel_rows<kDots>(a, row, rows, panel, c, add);
    row += rows;
  }
}

/// Columns of the panel for so many numbers of k from k on, [count, kPanel]; 0 beyond the matrix.
void read_weights(const StoredMatrix& w, int64_t k, int64_t count, int64_t first, int64_t width, float* to) {
  for (int64_t i = 0; i < count; ++i) std::fill(to + i * kPanel + width, to + (i + 1) * kPanel, 0.0f);
  if (w.col_stride == 1) {
    for (int64_t i = 0; i < count; ++i) w.read_row(k + i, first, width, to + i * kPanel);
    return;
  }
  for (int64_t j = 0; j < width; ++j) {
    for (int64_t i = 0; i < count; ++i) to[i * kPanel + j] = w(k + i, first + j);
  }
}

/// z = R z for [count, kPanel] numbers; bits of the columns' largest magnitudes.
HWY_INLINE void rotate_columns(float* z, int64_t count, hn::Vec<BitsTag> (&largest)[kPanelVectors]) {
  const FloatTag d;
  for (int64_t distance = 1; distance < count; distance *= 2) {
    for (int64_t k = 0; k < count; k += 2 * distance) {
      float* const lower = z + k * kPanel;
      float* const upper = lower + distance * kPanel;
      for (int64_t i = 0; i < distance * kPanel; i += kLanes) {
        const Vector p = hn::Load(d, lower + i), q = hn::Load(d, upper + i);
        hn::Store(hn::Add(p, q), d, lower + i);
        hn::Store(hn::Sub(p, q), d, upper + i);
      }
    }
  }
  const Vector factor = hn::Set(d, rotation_factor(count));
  for (int64_t k = 0; k < count; ++k, z += kPanel) {
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) {
      const Vector rotated = hn::Mul(hn::Load(d, z + v * kLanes), factor);
      hn::Store(rotated, d, z + v * kLanes);
      largest[v] = hn::Max(largest[v], hn::BitCast(BitsTag(), hn::Abs(rotated)));
    }
  }
}

}  // namespace

void multiply_channels(const ChannelRows& a, const std::byte* panel, [[maybe_unused]] ProductKernel kernel,
                       const MatrixView& c, bool add) {
  if constexpr (kHasPairs) {
    if (has_byte_dots(kernel)) return multiply_channels_with<true>(a, panel, c, add);
  }
  multiply_channels_with<false>(a, panel, c, add);
}

void pack_channels(const StoredMatrix& w, int64_t first, int64_t width, int64_t columns, std::byte* to) {
  MH_ASSERT(columns == kPanel);
  thread_local AlignedBuffer<float> memory;
  const int64_t depth = channel_depth(w.rows);
  float* const z = memory.get(depth * kPanel);
  std::fill(z + w.rows * kPanel, z + depth * kPanel, 0.0f);
  hn::Vec<BitsTag> largest[kPanelVectors];
  for (auto& bits : largest) bits = hn::Zero(BitsTag());
  for (int64_t k = 0, count = 0; k < w.rows; k += count) {
    count = rotated_together(w.rows - k);
    read_weights(w, k, count, first, width, z + k * kPanel);
    rotate_columns(z + k * kPanel, count, largest);
  }
  HWY_ALIGN uint32_t bits[kPanel];
  HWY_ALIGN float inverse[kPanel];
  for (int v = 0; v < kPanelVectors; ++v) hn::Store(largest[v], BitsTag(), bits + v * kLanes);
  auto* const scales = reinterpret_cast<float*>(to + depth * kPanel);
  for (int64_t j = 0; j < kPanel; ++j) {
    const IntegerScale scale(std::bit_cast<float>(bits[j]), 127);
    scales[j] = scale.scale / static_cast<float>(kRotation);
    inverse[j] = scale.inverse;
  }
  // Of a column that is not finite any bytes do: they stay in its lane, and its scale is NaN.
  auto* four = reinterpret_cast<int32_t*>(to);
  for (int64_t k = 0; k < depth; k += 4) {
    for (int64_t j = 0; j < kPanel; j += kLanes, four += kLanes) {
      const Vector factor = hn::Load(FloatTag(), inverse + j);
      const auto byte = [&](int64_t i) HWY_ATTR {
        const Vector scaled = hn::Mul(hn::Load(FloatTag(), z + (k + i) * kPanel + j), factor);
        return hn::Add(hn::NearestInt(scaled), hn::Set(IntegerTag(), kOffset));
      };
      const Integers low = hn::Or(byte(0), hn::ShiftLeft<8>(byte(1))),
                     high = hn::Or(byte(2), hn::ShiftLeft<8>(byte(3)));
      hn::StoreU(hn::Or(low, hn::ShiftLeft<16>(high)), IntegerTag(), four);
    }
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(multiply_channels);
HWY_EXPORT(pack_channels);

int64_t channel_panel_bytes(int64_t depth, int64_t columns) {
  return (channel_depth(depth) + static_cast<int64_t>(sizeof(float))) * columns;
}

void pack_channel_panel(const StoredMatrix& w, int64_t first, int64_t width, int64_t columns, std::byte* to) {
  MH_ASSERT(0 <= first && first + width <= w.cols && width <= columns && w.rows <= kMostChannelDepth);
  HWY_DYNAMIC_DISPATCH(pack_channels)(w, first, width, columns, to);
}

void multiply_channel_panel(const ChannelRows& rows, const std::byte* panel, ProductKernel kernel,
                            MatrixView c, bool add) {
  MH_ASSERT(rows.rows == c.rows && is_int8(kernel));
  HWY_DYNAMIC_DISPATCH(multiply_channels)(rows, panel, kernel, c, add);
}

}  // namespace mh
#endif

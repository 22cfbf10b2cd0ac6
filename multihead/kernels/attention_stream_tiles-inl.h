// Part of the attention kernel: the tiles of decoding, four keys and a few rows of scores, with the numbers
// of a head in the lanes. The 16 products of four keys and four rows are summed across the lanes together,
// which leaves them side by side in one vector.
#if defined(MULTIHEAD_KERNELS_ATTENTION_STREAM_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_STREAM_TILES_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_STREAM_TILES_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_STREAM_TILES_INL_H_
#endif

#include "multihead/kernels/attention_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

constexpr int kQuad = kLanes >= 4 ? 4 : 1;  // keys of a tile
constexpr int kTileRows = kLanes / kQuad;   // rows of a tile

/// The sum of the lanes of each of kLanes vectors.
HWY_INLINE VF sums_of_lanes(const VF (&v)[kLanes]) {
#if HWY_TARGET == HWY_SCALAR
  return v[0];
#else
  const DF d;
  VF part[kTileRows];  // in each 128 bits: of four vectors, the sums of those 128 bits
  MH_UNROLL for (int i = 0; i < kTileRows; ++i) {
    const VF* const q = v + 4 * i;
    const auto even = hn::Add(hn::InterleaveLower(d, q[0], q[2]), hn::InterleaveUpper(d, q[0], q[2]));
    const auto odd = hn::Add(hn::InterleaveLower(d, q[1], q[3]), hn::InterleaveUpper(d, q[1], q[3]));
    part[i] = hn::Add(hn::InterleaveLower(d, even, odd), hn::InterleaveUpper(d, even, odd));
  }
#if HWY_TARGET == HWY_AVX3
  const auto halves = [](VF a, VF b) HWY_ATTR {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a.raw, b.raw, 0x44), _mm512_shuffle_f32x4(a.raw, b.raw, 0xEE));
  };
  const __m512 low = halves(part[0], part[1]), high = halves(part[2], part[3]);
  return VF{_mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xDD))};
#elif HWY_TARGET == HWY_AVX2
  return hn::Add(hn::ConcatLowerLower(d, part[1], part[0]), hn::ConcatUpperUpper(d, part[1], part[0]));
#else
  return part[0];
#endif
#endif
}

/// The maximum, or the sum, of the four numbers in each 128 bits.
HWY_INLINE VF highest_of_quad(VF v) {
#if HWY_TARGET != HWY_SCALAR
  v = hn::Max(v, hn::Shuffle2301(v));
  v = hn::Max(v, hn::Shuffle1032(v));
#endif
  return v;
}
HWY_INLINE VF sum_of_quad(VF v) {
#if HWY_TARGET != HWY_SCALAR
  v = hn::Add(v, hn::Shuffle2301(v));
  v = hn::Add(v, hn::Shuffle1032(v));
#endif
  return v;
}

/// One vector of columns of a tile of scores. kShared: all rows of the tile read the same columns of the
/// keys.
template <bool kShared, class Load>
HWY_INLINE void score_step(const float* queries, int64_t stride, const float* const* keys,
                           const int64_t* columns, int64_t c, Load load, VF (&acc)[kLanes]) {
  VF shared[kQuad];
  if constexpr (kShared) {
    MH_UNROLL for (int t = 0; t < kQuad; ++t) shared[t] = load(keys[t] + columns[0] + c);
  }
  MH_UNROLL for (int r = 0; r < kTileRows; ++r) {
    const auto query = hn::Load(DF(), queries + r * stride + c);
    int64_t at = kShared ? 0 : columns[r] + c;
    asm("" : "+r"(at));  // else the compiler keeps a pointer for each of 16 sums and has no room for them
    MH_UNROLL for (int t = 0; t < kQuad; ++t) {
      const VF key = kShared ? shared[t] : load(keys[t] + at);
      acc[r * kQuad + t] = hn::MulAdd(query, key, acc[r * kQuad + t]);
    }
  }
}

/// Scores of kTileRows rows and kQuad keys.
template <bool kShared>
HWY_INLINE VF score_tile(const float* queries, int64_t stride, const float* const* keys,
                         const int64_t* columns, int size) {
  VF acc[kLanes];
  MH_UNROLL for (auto& a : acc) a = hn::Zero(DF());
  int c = 0;
  for (; c + kLanes <= size; c += kLanes) {
    score_step<kShared>(
        queries, stride, keys, columns, c, [](const float* p) HWY_ATTR { return hn::LoadU(DF(), p); }, acc);
  }
  if (c < size) {
    const int last = size - c;
    score_step<kShared>(
        queries, stride, keys, columns, c, [last](const float* p) HWY_ATTR { return load_first(p, last); },
        acc);
  }
  return sums_of_lanes(acc);
}

/// One vector of columns of R rows, which read the same columns: sums += weights * kQuad values.
template <int R, class Load>
HWY_INLINE void value_step(const VF* weight, const float* const* values, int64_t at, Load load, float* sums,
                           int64_t stride) {
  const DF d;
  VF value[kQuad];
  MH_UNROLL for (int t = 0; t < kQuad; ++t) value[t] = load(values[t] + at);
  MH_UNROLL for (int r = 0; r < R; ++r) {
    auto sum = hn::Load(d, sums + r * stride);
    MH_UNROLL for (int t = 0; t < kQuad; ++t) sum = hn::MulAdd(weight[r * kQuad + t], value[t], sum);
    hn::Store(sum, d, sums + r * stride);
  }
}
template <int R>
HWY_INLINE void value_rows(const float* weights, const float* const* values, int64_t column, int size,
                           float* sums, int64_t stride) {
  VF weight[R * kQuad];
  MH_UNROLL for (int i = 0; i < R * kQuad; ++i) weight[i] = hn::Set(DF(), weights[i]);
  int c = 0;
  for (; c + kLanes <= size; c += kLanes) {
    value_step<R>(
        weight, values, column + c, [](const float* p) HWY_ATTR { return hn::LoadU(DF(), p); }, sums + c,
        stride);
  }
  if (c < size) {
    const int last = size - c;
    value_step<R>(
        weight, values, column + c, [last](const float* p) HWY_ATTR { return load_first(p, last); }, sums + c,
        stride);
  }
}

/// sums += weights * values of a tile. shared: all rows of the tile read the same columns of the values.
HWY_INLINE void value_tile(bool shared, const float* weights, const float* const* values,
                           const int64_t* columns, int size, int64_t rows, float* sums, int64_t stride) {
  if (shared) return value_rows<kTileRows>(weights, values, columns[0], size, sums, stride);
  for (int r = 0; r < rows; ++r) {
    value_rows<1>(weights + r * kQuad, values, columns[r], size, sums + r * stride, stride);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

// Inside of the attention kernel: out[r][c] = sum over n of a(r, n) * b[n][c], with a in a strip [key][16
// queries].
#if defined(MULTIHEAD_KERNELS_ATTENTION_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_PRODUCT_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_PRODUCT_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_PRODUCT_INL_H_
#endif

#include "multihead/kernels/attention_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// Row r is query r of the strip, the sum goes over its keys: O = P V and dQ = dS K.
struct OverKeys {
  static constexpr int64_t kRowStep = 1, kSumStep = kBlock;
  static constexpr bool kBlocks = false;
};
/// Row r is key r, the sum goes over the queries of one strip after another, `a_stride` apart: dV = P^T dO,
/// dK = dS^T Q.
struct OverQueries {
  static constexpr int64_t kRowStep = kBlock, kSumStep = 1;
  static constexpr bool kBlocks = true;
};
/// Rows of numbers `a_stride` apart, the sum goes along them: O = P V for a few queries.
struct AlongRows {
  static constexpr int64_t kRowStep = 0, kSumStep = 1;
  static constexpr bool kBlocks = false;
};

/// What happens to the sums; factor[r] is 1 where none are given.
enum class Finish {
  kWrite,  // out = factor[r] * sum
  kAdd,    // out = factor[r] * out + sum
};

struct Product {
  const float* a;
  int64_t a_stride;  // see the layouts
  Rows b;
  int64_t sums;  // n goes from 0 to here
  float* out;
  int64_t out_stride;
  Finish finish;
  const float* factors = nullptr;  // [rows]
};

template <int R, int C, bool kTail>
HWY_INLINE void finish_tile(const Product& p, VF (&acc)[R][C], int64_t row, int64_t column, int tail) {
  const DF d;
  const float* factors = p.factors ? p.factors + row : nullptr;  // none: 1
  const int64_t stride = p.out_stride;
  float* HWY_RESTRICT out = p.out + row * stride + column;
  if (p.finish == Finish::kWrite) {
    MH_UNROLL for (int r = 0; r < R; ++r) {
      const auto factor = hn::Set(d, factors ? factors[r] : 1.0f);
      MH_UNROLL for (int c = 0; c < C; ++c) {
        const VF v = hn::Mul(acc[r][c], factor);
        if constexpr (kTail) {
          store_first(v, out + r * stride, tail);
        } else {
          hn::StoreU(v, d, out + r * stride + c * kLanes);
        }
      }
    }
    return;
  }
  MH_UNROLL for (int r = 0; r < R; ++r) {
    const auto factor = hn::Set(d, factors ? factors[r] : 1.0f);
    MH_UNROLL for (int c = 0; c < C; ++c) {
      float* at = out + r * stride + c * kLanes;
      const VF v = hn::MulAdd(kTail ? load_first(at, tail) : hn::LoadU(d, at), factor, acc[r][c]);
      if constexpr (kTail) {
        store_first(v, at, tail);
      } else {
        hn::StoreU(v, d, at);
      }
    }
  }
}

/// R rows of C vectors; kTail: of one vector with only `tail` lanes.
template <class Layout, bool kIndexed, int R, int C, bool kTail>
HWY_INLINE void product_tile(const Product& p, int64_t row, int64_t column, int tail) {
  const DF d;
  VF acc[R][C];
  MH_UNROLL for (int r = 0; r < R; ++r) {
    MH_UNROLL for (int c = 0; c < C; ++c) acc[r][c] = hn::Zero(d);
  }
  constexpr bool kStrided = Layout::kRowStep == 0;
  const int64_t row_step = kStrided ? p.a_stride : Layout::kRowStep;
  const float* HWY_RESTRICT a = p.a + row * row_step;
  const int64_t stride = p.b.stride;
  const float* HWY_RESTRICT b = p.b.data + column;
  const int32_t* index = p.b.index;
  for (int64_t begin = 0; begin < p.sums;) {
    const int64_t end = Layout::kBlocks && p.sums - begin > kBlock ? begin + kBlock : p.sums;
    const float* HWY_RESTRICT s = a;
    for (int64_t n = begin; n < end; ++n) {
      const float* HWY_RESTRICT from = kIndexed ? b + index[n] * stride : b;
      VF v[C];
      MH_UNROLL for (int c = 0; c < C; ++c) {
        v[c] = kTail ? load_first(from, tail) : hn::LoadU(d, from + c * kLanes);
      }
      MH_UNROLL for (int r = 0; r < R; ++r) {
        const auto factor = hn::Set(d, s[r * row_step]);
        MH_UNROLL for (int c = 0; c < C; ++c) acc[r][c] = hn::MulAdd(factor, v[c], acc[r][c]);
      }
      s += Layout::kSumStep;
      if constexpr (!kIndexed) b += stride;
    }
    if constexpr (Layout::kBlocks) a += p.a_stride;
    begin = end;
  }
  finish_tile<R, C, kTail>(p, acc, row, column, tail);
}

template <class Layout, bool kIndexed, int R, int C, bool kTail>
HWY_INLINE void product_rows(const Product& p, int64_t row, int64_t rows, int64_t column, int tail) {
  if constexpr (R > 0) {
    if (rows == R) {
      product_tile<Layout, kIndexed, R, C, kTail>(p, row, column, tail);
    } else {
      product_rows<Layout, kIndexed, R - 1, C, kTail>(p, row, rows, column, tail);
    }
  }
}

/// All rows of C vectors of columns, R at a time.
template <class Layout, bool kIndexed, int R, int C, bool kTail>
HWY_INLINE void product_columns(const Product& p, int64_t rows, int64_t column, int tail = 0) {
  int64_t row = 0;
  for (; row + R <= rows; row += R) product_tile<Layout, kIndexed, R, C, kTail>(p, row, column, tail);
  product_rows<Layout, kIndexed, R - 1, C, kTail>(p, row, rows - row, column, tail);
}

/// All of it: `rows` x `columns`. kRows: at most that many rows in a tile (fewer tiles to compile).
template <class Layout, bool kIndexed, int kRows = 8>
HWY_NOINLINE void product(const Product& p, int64_t rows, int64_t columns) {
  constexpr auto least = [](int a, int b) { return a < b ? a : b; };
  constexpr bool kMany = kLanes != 8;  // AVX2 has only 16 registers
  int64_t c = 0;
  if constexpr (kMany) {
    for (; c + 4 * kLanes <= columns; c += 4 * kLanes)
      product_columns<Layout, kIndexed, least(6, kRows), 4, false>(p, rows, c);
  }
  for (; c + 2 * kLanes <= columns; c += 2 * kLanes) {
    product_columns<Layout, kIndexed, least(kMany ? 8 : 6, kRows), 2, false>(p, rows, c);
  }
  for (; c + kLanes <= columns; c += kLanes) product_columns<Layout, kIndexed, kRows, 1, false>(p, rows, c);
  if (c < columns)
    product_columns<Layout, kIndexed, kRows, 1, true>(p, rows, c, static_cast<int>(columns - c));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

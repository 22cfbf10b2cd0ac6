// Part of the attention kernel: the two inner loops that take almost all the time, as tiles held in
// registers.
//
// A strip holds numbers of 16 queries as [key][16]. Scores are computed transposed, S^T = K Q^T: a number
// of a key is broadcast and multiplied with up to 4 strips of queries, so that one load serves 64 queries.
// Products broadcast the numbers of a strip and multiply them with whole rows of V, K, Q or dO.
//
// No tile is compiled for a remainder. A tile may reach beyond the end of a strip, which has room for it,
// or it reads the last row again; what lies beyond the end is not stored or not used. A row's last vector
// is always loaded and stored by a mask, which costs nothing when it is full.
#if defined(MULTIHEAD_KERNELS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_TILES_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_TILES_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_TILES_INL_H_
#endif

#include "multihead/kernels/attention_cap-inl.h"
#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/attention_stored_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

constexpr int kGroups = kLanes == 16 ? 4 : 1;  // strips of 16 queries that share a tile of scores
constexpr int64_t kRoom = 8;                   // keys by which a tile may reach beyond the end of a strip
/// Keys of a tile: as many as there are registers for their sums.
template <int kStrips>
constexpr int kTileKeys = kLanes == 1    ? 2
                          : kLanes < 16  ? 4
                          : kStrips == 4 ? 6
                                         : 8;

/// acc[t][strip] = sum over c of keys[t][c] * block[strip][c][16 lanes].
template <int kStrips, int kKeys = kTileKeys<kStrips>>
HWY_INLINE void dot_tile(const float* HWY_RESTRICT const (&keys)[kKeys], const float* HWY_RESTRICT block,
                         int64_t size, VF (&acc)[kKeys][kStrips * kVectors]) {
  const DF d;
  MH_UNROLL for (int t = 0; t < kKeys; ++t) {
    MH_UNROLL for (int w = 0; w < kStrips * kVectors; ++w) acc[t][w] = hn::Zero(d);
  }
  for (int64_t c = 0; c < size; ++c) {
    VF lanes[kStrips * kVectors];
    MH_UNROLL for (int w = 0; w < kStrips * kVectors; ++w) {
      lanes[w] = hn::Load(d, block + (w / kVectors * size + c) * kBlock + w % kVectors * kLanes);
    }
    MH_UNROLL for (int t = 0; t < kKeys; ++t) {
      const auto number = hn::Set(d, keys[t][c]);
      MH_UNROLL for (int w = 0; w < kStrips * kVectors; ++w) acc[t][w] =
          hn::MulAdd(number, lanes[w], acc[t][w]);
    }
  }
}

/// The rows of a tile that begins at j; beyond the end the last row again.
template <int kKeys>
HWY_INLINE void tile_rows(Rows rows, int64_t j, int64_t n, const float* HWY_RESTRICT (&tile)[kKeys]) {
  for (int t = 0; t < kKeys; ++t) tile[t] = rows.data + (j + t < n ? j + t : n - 1) * rows.stride;
}

/// strip[j] = scores of keys [0, n) for each of kStrips strips `step` apart; top[strip][16] = their maxima.
/// The strips need room for kRoom more keys.
template <int kStrips>
HWY_NOINLINE void score_strips(Rows keys, int64_t n, const float* block, int64_t size,
                               float* HWY_RESTRICT strip, int64_t step, float* HWY_RESTRICT top) {
  const DF d;
  constexpr int kKeys = kTileKeys<kStrips>, kWide = kStrips * kVectors;
  VF most[kWide];
  MH_UNROLL for (int w = 0; w < kWide; ++w) most[w] = hn::Load(d, top + w * kLanes);
  for (int64_t j = 0; j < n; j += kKeys) {
    const float* HWY_RESTRICT tile[kKeys];
    tile_rows(keys, j, n, tile);
    VF acc[kKeys][kWide];
    dot_tile<kStrips>(tile, block, size, acc);
    MH_UNROLL for (int w = 0; w < kWide; ++w) {
      float* at = strip + w / kVectors * step + j * kBlock + w % kVectors * kLanes;
      VF highest = acc[0][w];
      MH_UNROLL for (int t = 0; t < kKeys; ++t) {
        hn::Store(acc[t][w], d, at + t * kBlock);
        if (t > 0) highest = hn::Max(highest, acc[t][w]);
      }
      most[w] = hn::Max(most[w], highest);
    }
  }
  MH_UNROLL for (int w = 0; w < kWide; ++w) hn::Store(most[w], d, top + w * kLanes);
}

/// The same for 1 to kGroups strips.
HWY_INLINE void score_strips(int strips, Rows keys, int64_t n, const float* block, int64_t size, float* strip,
                             int64_t step, float* top) {
  if constexpr (kGroups == 1) {
    score_strips<1>(keys, n, block, size, strip, step, top);
  } else {
    const auto scores = strips == 4   ? score_strips<4>
                        : strips == 3 ? score_strips<3>
                        : strips == 2 ? score_strips<2>
                                      : score_strips<1>;
    scores(keys, n, block, size, strip, step, top);
  }
}

/// out[r][c] (+)= sum over n of a(r, n) * b[n][c].
struct Product {
  const float* a;  // a strip
  int64_t a_step;  // OverQueries: from strip to strip
  Rows b;          // without an index
  int64_t sums;    // n goes from 0 to here
  float* out;
  int64_t out_stride;
  bool add;
  Ahead* ahead = nullptr;          // OverKeys: what is prefetched meanwhile
  const float* factors = nullptr;  // [rows] or none; the sums are multiplied by them (not with `add`)
};

// Steps of a sum in which one line is prefetched. Lines that come faster take the places in which loads from the
// second-level cache wait: on a Xeon the whole pass then took a third longer.
constexpr int64_t kAskSteps = 16;

/// Row r is query r of the strip, the sum goes over its keys: O = P V and dQ = dS K.
struct OverKeys {
  static constexpr int64_t kRowStep = 1, kSumStep = kBlock;
  static constexpr bool kManyStrips = false;
};
/// Row r is key r, the sum goes over the queries of one strip after another: dV = P^T dO, dK = dS^T Q.
struct OverQueries {
  static constexpr int64_t kRowStep = kBlock, kSumStep = 1;
  static constexpr bool kManyStrips = true;
};

/// R rows of C vectors, the last of which has only `last` lanes. kAsks: with p.ahead.
template <class Layout, int R, int C, bool kAsks>
HWY_INLINE void product_tile(const Product& p, int64_t row, int64_t rows, int64_t column, int last) {
  const DF d;
  VF acc[R][C];
  MH_UNROLL for (int r = 0; r < R; ++r) {
    MH_UNROLL for (int c = 0; c < C; ++c) acc[r][c] = hn::Zero(d);
  }
  const float* HWY_RESTRICT a = p.a + row * Layout::kRowStep;
  const float* HWY_RESTRICT b = p.b.data + column;
  const int64_t stride = p.b.stride;
  for (int64_t left = p.sums; left > 0; left -= kBlock) {
    const int64_t n = Layout::kManyStrips && left > kBlock ? kBlock : left;
    const float* HWY_RESTRICT s = a;
    const auto step = [&]() HWY_ATTR {
      VF v[C];
      MH_UNROLL for (int c = 0; c + 1 < C; ++c) v[c] = hn::LoadU(d, b + c * kLanes);
      v[C - 1] = load_first(b + (C - 1) * kLanes, last);
      MH_UNROLL for (int r = 0; r < R; ++r) {
        const auto factor = hn::Set(d, s[r * Layout::kRowStep]);
        MH_UNROLL for (int c = 0; c < C; ++c) acc[r][c] = hn::MulAdd(factor, v[c], acc[r][c]);
      }
      s += Layout::kSumStep;
      b += stride;
    };
    int64_t i = 0;
    if constexpr (kAsks) {
      for (; i + kAskSteps <= n; i += kAskSteps) {
        p.ahead->ask();
        MH_UNROLL for (int64_t k = 0; k < kAskSteps; ++k) step();
      }
    }
    for (; i < n; ++i) step();
    if constexpr (!Layout::kManyStrips) break;
    a += p.a_step;
  }
  const int64_t there = rows - row;  // of the tile's rows
  float* HWY_RESTRICT out = p.out + row * p.out_stride + column;
  if (p.add) {
    MH_UNROLL for (int r = 0; r < R; ++r) {
      if (r >= there) break;
      float* at = out + r * p.out_stride;
      MH_UNROLL for (int c = 0; c + 1 < C; ++c) {
        hn::StoreU(hn::Add(hn::LoadU(d, at + c * kLanes), acc[r][c]), d, at + c * kLanes);
      }
      at += (C - 1) * kLanes;
      store_first(hn::Add(load_first(at, last), acc[r][C - 1]), at, last);
    }
    return;
  }
  MH_UNROLL for (int r = 0; r < R; ++r) {
    if (r >= there) break;
    const auto factor = hn::Set(d, p.factors ? p.factors[row + r] : 1.0f);
    float* at = out + r * p.out_stride;
    MH_UNROLL for (int c = 0; c + 1 < C; ++c) hn::StoreU(hn::Mul(acc[r][c], factor), d, at + c * kLanes);
    store_first(hn::Mul(acc[r][C - 1], factor), at + (C - 1) * kLanes, last);
  }
}

template <class Layout, int R, int C, bool kAsks = false>
HWY_NOINLINE void product_columns(const Product& p, int64_t rows, int64_t column, int last) {
  // Asking is a function of its own, so that small items keep a small loop.
  if constexpr (!Layout::kManyStrips && !kAsks) {
    if (p.ahead) return product_columns<Layout, R, C, true>(p, rows, column, last);
  }
  for (int64_t row = 0; row < rows; row += R) product_tile<Layout, R, C, kAsks>(p, row, rows, column, last);
}

/// Computes the whole product, `rows` x `columns`.
template <class Layout>
HWY_INLINE void product(const Product& p, int64_t rows, int64_t columns) {
  // Eight rows of two vectors load half as much of b as four rows of four. These loads, from the
  // second-level cache, would otherwise limit the speed.
  constexpr int kMost = kLanes == 8 ? 2 : 3;  // AVX2 has only 16 registers
  constexpr int kRows = kLanes == 8 ? 4 : 8;
  for (int64_t c = 0; c < columns;) {
    const int64_t left = (columns - c + kLanes - 1) / kLanes;
    const int64_t vectors = left == kMost ? kMost : left < 2 ? left : 2;
    const int64_t end = c + vectors * kLanes;
    const int last = end <= columns ? kLanes : static_cast<int>(columns - end + kLanes);
    if constexpr (kMost == 3) {
      if (vectors == 3) product_columns<Layout, kRows, 3>(p, rows, c, last);
    }
    if (vectors == 2) product_columns<Layout, kRows, 2>(p, rows, c, last);
    if (vectors == 1) product_columns<Layout, 8, 1>(p, rows, c, last);
    c = end;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

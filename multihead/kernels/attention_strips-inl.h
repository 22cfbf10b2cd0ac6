// Part of the attention kernel's forward pass: strips of scores, and the softmax that turns them into
// weights.
//
// The softmax is taken online (Milakov and Gimelshein 2018): chunk by chunk of the keys, relative to a
// running maximum. That maximum lags behind: it moves only when a score exceeds it by more than kLag, so
// sums rarely have to be rescaled. Weights may grow to 2^kLag in between, which costs no precision.
#if defined(MULTIHEAD_KERNELS_ATTENTION_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_STRIPS_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_STRIPS_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_STRIPS_INL_H_
#endif

#include <algorithm>

#include "multihead/base/aligned.h"
#include "multihead/kernels/attention_bias-inl.h"
#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/attention_mask-inl.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/attention_stored_rows-inl.h"
#include "multihead/kernels/attention_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

constexpr int64_t kChunk = 256;  // keys met at once; chunks begin at multiples of it
constexpr int kTaskStrips = 32;  // strips of queries that share the copy of a chunk
constexpr float kLag = 8;        // in powers of two
constexpr int64_t kStripSize = kBlock * (kChunk + kRoom);
constexpr int64_t kSmall = 64;  // keys of a small item
constexpr int kFewRest = 4;     // so few queries after the last full strip do not make a strip

struct ForwardMemory {
  AlignedBuffer<float> queries, strips, sums, keys, values;
  AlignedBuffer<uint16_t> allow, ready, keep;
  BiasMemory bias;
};

/// 16 queries of a sequence.
struct Strip {
  BlockMask mask;
  int n;                            // queries there are
  int64_t row, first;               // of the first query among all, and in its sequence
  const uint16_t* allow = nullptr;  // [mask.end - mask.begin], set where `mask` cuts; made once for all heads
};

/// How the queries of a piece are computed.
enum class PieceKind {
  kStrips,    // in strips; the few that remain after the last full one by themselves
  kStreamed,  // the one query of its sequence, of all heads together
  kDecoded,   // attention_decode() has done it: only weights and statistics are left
};

/// The part of a sequence that a task does at once: up to kTaskStrips strips.
struct Piece {
  PieceKind kind;
  Strip strip[kTaskStrips];     // with strip[strips] for the few
  int strips = 0, few = 0;      // few: queries that are too few for a strip
  int64_t begin = 0, end = 0;   // keys that any query sees; without those of the few
  int64_t first = 0, last = 0;  // queries of the sequence
  // The sequence:
  size_t sequence;
  int64_t row, queries, keys;                   // row: of its first query among all
  const float* q;                               // its first query
  float *output, *lse;                          // of its first query; lse may be null
  int64_t q_step, k_step, v_step, output_step;  // from a head to the next
  int64_t lse_step, lse_stride;                 // from a head, and from a query to the next
  const int32_t* index;                         // its part of AttentionInputs::key_rows, or null

  /// Whether all keys of a strip are in one chunk.
  static bool single(const Strip& s) { return s.mask.begin / kChunk == (s.mask.end - 1) / kChunk; }
};

/// The same with the first key of its sequence, or row 0 where there is an index.
template <class T>
struct StoredPiece : Piece {
  const T *k, *v;
};

/// The running softmax of each strip's queries.
struct Running {
  HWY_ALIGN float most[kTaskStrips][kBlock];
  HWY_ALIGN float total[kTaskStrips][kBlock];
};

/// Sets scores of keys in [begin, end) that a query may not see to -infinity; top = the maxima of the
/// others.
HWY_NOINLINE inline void mask_strip(const Strip& s, int64_t begin, int64_t end, const uint16_t* allow,
                                    float* strip, float* top) {
  const DF d;
  for_cut_keys(s.mask, begin, end, [&](int64_t from, int64_t to) HWY_ATTR {
    for (int64_t j = from - begin; j < to - begin; ++j) {
      for (int w = 0; w < kVectors; ++w) {
        float* at = strip + j * kBlock + w * kLanes;
        hn::Store(hn::IfThenElse(block_mask(allow[j], w), hn::Load(d, at), hn::Set(d, kMinusInfinity)), d,
                  at);
      }
    }
  });
  for (int w = 0; w < kVectors; ++w) {
    auto most = hn::Set(d, kMinusInfinity);
    for (int64_t j = 0; j < end - begin; ++j)
      most = hn::Max(most, hn::Load(d, strip + j * kBlock + w * kLanes));
    hn::Store(most, d, top + w * kLanes);
  }
}

/// strip = 2^(strip - most); adds the sums to `total`.
HWY_INLINE void exponentiate(float* HWY_RESTRICT strip, int64_t n, const float* most, float* total) {
  const DF d;
  VF base[kVectors], sum[kVectors];
  MH_UNROLL for (int w = 0; w < kVectors; ++w) {
    const auto m = hn::Load(d, most + w * kLanes);
    base[w] = hn::IfThenZeroElse(hn::Eq(m, hn::Set(d, kMinusInfinity)), m);
    sum[w] = hn::Load(d, total + w * kLanes);
  }
  for (int64_t j = 0; j < n; ++j) {
    MH_UNROLL for (int w = 0; w < kVectors; ++w) {
      float* at = strip + j * kBlock + w * kLanes;
      const VF p = exp2_vector(hn::Sub(hn::Load(d, at), base[w]));
      sum[w] = hn::Add(sum[w], p);
      hn::Store(p, d, at);
    }
  }
  MH_UNROLL for (int w = 0; w < kVectors; ++w) hn::Store(sum[w], d, total + w * kLanes);
}

/// Sets to 0 what dropout drops.
HWY_NOINLINE inline void drop(float* HWY_RESTRICT strip, int64_t n, const uint16_t* keep) {
  const DF d;
  for (int64_t j = 0; j < n; ++j) {
    for (int w = 0; w < kVectors; ++w) {
      float* at = strip + j * kBlock + w * kLanes;
      hn::Store(hn::IfThenElseZero(block_mask(keep[j], w), hn::Load(d, at)), d, at);
    }
  }
}

/// Moves the running maximum where scores exceed it by more than the lag.
HWY_NOINLINE inline void move_maximum(const float* top, float* most, float* total, int n, float* sums,
                                      int64_t stride, int64_t columns) {
  const DF d;
  HWY_ALIGN float factors[kBlock];
  bool any = false;
  for (int w = 0; w < kVectors; ++w) {
    const auto now = hn::Load(d, top + w * kLanes), before = hn::Load(d, most + w * kLanes);
    const auto grew = hn::Gt(now, hn::Add(before, hn::Set(d, kLag)));
    any = any || !hn::AllFalse(d, grew);
    const auto factor = hn::IfThenElse(grew, exp2_vector(hn::Sub(before, now)), hn::Set(d, 1.0f));
    hn::Store(factor, d, factors + w * kLanes);
    hn::Store(hn::IfThenElse(grew, now, before), d, most + w * kLanes);
    hn::Store(hn::Mul(hn::Load(d, total + w * kLanes), factor), d, total + w * kLanes);
  }
  if (!any) return;
  for (int i = 0; i < n; ++i) {
    if (factors[i] == 1) continue;
    for (int64_t c = 0; c < columns; ++c) sums[i * stride + c] *= factors[i];
  }
}

/// The product P V that skips masked keys, for V with NaN or infinity: a weight of 0 times such a value
/// would not be 0.
HWY_NOINLINE inline void product_of_allowed(const Product& p, const Mask& mask, const Strip& s,
                                            const Piece& piece, int64_t begin, int64_t columns) {
  for (int64_t r = 0; r < s.n; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (int64_t n = 0; n < p.sums; ++n) {
        if (mask.allows(s.row + r, s.first + r, begin + n, piece.queries, piece.keys)) {
          sum = multiply_add(p.a[n * kBlock + r], p.b.row(n)[c], sum);
        }
      }
      float& out = p.out[r * p.out_stride + c];
      out = p.add ? out + sum : (p.factors ? p.factors[r] : 1.0f) * sum;
    }
  }
}

/// factors = scale / total; 0 for a query that sees no key.
HWY_INLINE void output_factors(const float* total, float scale, float* factors) {
  const DF d;
  for (int w = 0; w < kVectors; ++w) {
    const auto sum = hn::Load(d, total + w * kLanes);
    hn::Store(hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), hn::Div(hn::Set(d, scale), sum)), d,
              factors + w * kLanes);
  }
}

/// One head of a piece.
struct HeadOfPiece {
  int head;
  Rows q;              // from the piece's first query on
  float* output;       // of the piece's first query
  float* lse;          // of the sequence's first query, or null
  float output_scale;  // the gate, and what makes up for dropout
  const HeadBias* bias = nullptr;
  float* queries;  // [strips][d_key][16]
  float* sums;     // [strips * 16, sums_stride]: the output while it is not complete
  int64_t sums_stride;
};

/// The same with the sequence's keys and values.
template <class T>
struct StoredHead : HeadOfPiece {
  StoredRows<T> k, v;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

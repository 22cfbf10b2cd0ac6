// Part of the attention kernel: one to six queries of a sequence, as in decoding.
//
// With so few queries most lanes of a block would be empty, so here the keys lie in the lanes: 16 keys are
// transposed in registers, four numbers at a time, and each column is multiplied with every query before
// the next is loaded.
#if defined(MULTIHEAD_KERNELS_ATTENTION_FEW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_FEW_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_FEW_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_FEW_INL_H_
#endif

#include <cmath>

#include "multihead/base/aligned.h"
#include "multihead/kernels/attention_cap-inl.h"
#include "multihead/kernels/attention_mask-inl.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/attention_stored_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

constexpr int kFewQueries = 6;
constexpr int64_t kFewKeys = 1024;  // all scores of a head are kept: 6 x 4 KiB

struct FewMemory {
  AlignedBuffer<float> scores;
};

struct FewQueries {
  Rows q, k, v;
  int n;
  float *output, *lse;  // of the first query; lse may be null
  int64_t lse_stride;
  int64_t row, first;  // of the first query among all, and in its sequence
  int64_t queries, keys;
  int head;
  size_t sequence;
};

/// Scores of kLanes keys (rows) against n queries.
template <int n>
HWY_INLINE void few_scores(const float* const (&query)[n], const float* const* keys, int size,
                           VF (&score)[n]) {
  const DF d;
  constexpr int kChains = n <= 3 ? 2 : 1;  // enough sums at once to hide the latency
  VF acc[n][kChains];
  MH_UNROLL for (int i = 0; i < n; ++i) {
    MH_UNROLL for (int e = 0; e < kChains; ++e) acc[i][e] = hn::Zero(d);
  }
  int64_t c = 0;
  for (; c + 4 <= size; c += 4) {
    VF column[4];
    load_columns(keys, c, column);
    MH_UNROLL for (int e = 0; e < 4; ++e) {
      MH_UNROLL for (int i = 0; i < n; ++i) {
        acc[i][e % kChains] = hn::MulAdd(hn::Set(d, query[i][c + e]), column[e], acc[i][e % kChains]);
      }
    }
  }
  for (; c < size; ++c) {
    HWY_ALIGN float column[kLanes];
    for (int j = 0; j < kLanes; ++j) column[j] = keys[j][c];
    MH_UNROLL for (int i = 0; i < n; ++i) {
      acc[i][0] = hn::MulAdd(hn::Set(d, query[i][c]), hn::Load(d, column), acc[i][0]);
    }
  }
  MH_UNROLL for (int i = 0; i < n; ++i) score[i] =
      kChains == 2 ? hn::Add(acc[i][0], acc[i][kChains - 1]) : acc[i][0];
}

/// The mask of keys j ... j + kLanes - 1 that query i of the block may see.
HWY_INLINE MF few_allowed(const Mask& mask, const BlockMask& range, int64_t row, int i, int64_t j) {
  const DI d;
  if (range.dense) {
    const uint64_t word = mask.bits().words[(row + i) * mask.bits().words_per_row + j / 64] >> (j % 64);
    const auto bits = static_cast<uint16_t>(word);
    return block_mask(bits, 0);
  }
  const auto key = hn::Iota(d, static_cast<int32_t>(j));
  const auto from = hn::Set(d, range.row_begin[i]), to = hn::Set(d, range.row_end[i]);
  return hn::RebindMask(DF(), hn::AndNot(hn::Gt(from, key), hn::Gt(to, key)));
}

/// out[i] = factors[i] * (kAdd: out[i] +) sum over j of weights[i][j] v[j], C vectors of columns; only `rows`
/// of n are stored.
template <int n, int C, bool kAdd = false>
HWY_INLINE void few_values(const float* HWY_RESTRICT weights, int64_t stride, Rows v, int64_t sums, int rows,
                           const float* factors, int64_t column, int last, float* out, int64_t out_stride) {
  const DF d;
  VF acc[n][C];
  MH_UNROLL for (int i = 0; i < n; ++i) {
    MH_UNROLL for (int c = 0; c < C; ++c) acc[i][c] = hn::Zero(d);
  }
  for (int64_t j = 0; j < sums; ++j) {
    const float* row = v.row(j) + column;
    VF value[C];
    MH_UNROLL for (int c = 0; c + 1 < C; ++c) value[c] = hn::LoadU(d, row + c * kLanes);
    value[C - 1] = load_first(row + (C - 1) * kLanes, last);
    MH_UNROLL for (int i = 0; i < n; ++i) {
      const auto weight = hn::Set(d, weights[i * stride + j]);
      MH_UNROLL for (int c = 0; c < C; ++c) acc[i][c] = hn::MulAdd(weight, value[c], acc[i][c]);
    }
  }
  MH_UNROLL for (int i = 0; i < n; ++i) {
    if (i >= rows) break;
    float* at = out + i * out_stride + column;
    if constexpr (kAdd) {
      MH_UNROLL for (int c = 0; c < C; ++c) {
        const int there = c + 1 < C ? kLanes : last;
        store_first(hn::Add(load_first(at + c * kLanes, there), acc[i][c]), at + c * kLanes, there);
      }
      continue;
    }
    const auto factor = hn::Set(d, factors[i]);
    MH_UNROLL for (int c = 0; c + 1 < C; ++c) hn::StoreU(hn::Mul(acc[i][c], factor), d, at + c * kLanes);
    store_first(hn::Mul(acc[i][C - 1], factor), at + (C - 1) * kLanes, last);
  }
}

/// n: f.n or a little more; the missing queries are computed as copies of the last one and not stored.
template <int n, bool kCapped>
HWY_NOINLINE void forward_few_of(const AttentionInputs& in, const AttentionOutputs& out, const FewQueries& f,
                                 const BlockMask& range, FewMemory& memory) {
  const DF d;
  const int64_t begin =
      range.begin / kLanes * kLanes;  // so that a vector lies within one word of a dense mask
  const int64_t stride = (range.end - begin + kLanes - 1) / kLanes * kLanes;
  float* scores = memory.scores.get(n * stride);
  const bool masked = in.mask.kind() != Mask::Kind::kNone;
  const auto factor = hn::Set(d, product_factor<kCapped>(in));
  const float* queries[n];
  for (int i = 0; i < n; ++i) queries[i] = f.q.row(i < f.n ? i : f.n - 1);
  VF most[n];
  MH_UNROLL for (int i = 0; i < n; ++i) most[i] = hn::Set(d, kMinusInfinity);
  for (int64_t j = begin; j < range.end; j += kLanes) {
    const float* keys[kLanes];
    const int64_t last = range.end - 1;
    for (int t = 0; t < kLanes; ++t) keys[t] = f.k.row(j + t < last ? j + t : last);
    VF score[n];
    few_scores<n>(queries, keys, in.d_key, score);
    MH_UNROLL for (int i = 0; i < n; ++i) score[i] = hn::Mul(score[i], factor);
    if constexpr (kCapped) cap_row(score, cap_of(in));
    const auto there = hn::FirstN(d, static_cast<size_t>(range.end - j < kLanes ? range.end - j : kLanes));
    MH_UNROLL for (int i = 0; i < n; ++i) {
      const auto seen = masked && i < f.n ? hn::And(there, few_allowed(in.mask, range, f.row, i, j)) : there;
      score[i] = hn::IfThenElse(seen, score[i], hn::Set(d, kMinusInfinity));
      most[i] = hn::Max(most[i], score[i]);
      hn::Store(score[i], d, scores + i * stride + (j - begin));
    }
  }
  HWY_ALIGN float top[kBlock] = {};
  HWY_ALIGN float total[kBlock] = {};
  for (int i = 0; i < f.n; ++i) {
    top[i] = hn::GetLane(hn::MaxOfLanes(d, most[i]));
    if (top[i] == kMinusInfinity) top[i] = 0;
    auto sum = hn::Zero(d);
    float* at = scores + i * stride;
    for (int64_t j = 0; j < stride; j += kLanes) {
      const auto p = exp2_vector(hn::Sub(hn::Load(d, at + j), hn::Set(d, top[i])));
      sum = hn::Add(sum, p);
      hn::Store(p, d, at + j);
    }
    total[i] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
  HWY_ALIGN float factors[kBlock] = {};
  const float gate = in.gate_of(f.sequence, f.head);
  for (int i = 0; i < f.n; ++i) factors[i] = total[i] == 0 ? 0 : gate / total[i];
  const Rows v = f.v.from(begin);
  const int64_t sums = range.end - begin, out_stride = out.output.stride;
  float* o = f.output;
  if (masked && !all_finite(v, sums, in.d_value)) {
    for (int i = 0; i < f.n; ++i) {
      for (int64_t c = 0; c < in.d_value; ++c) {
        float sum = 0;
        for (int64_t j = 0; j < sums; ++j) {
          if (in.mask.allows(f.row + i, f.first + i, begin + j, f.queries, f.keys)) {
            sum = multiply_add(scores[i * stride + j], v.row(j)[c], sum);
          }
        }
        o[i * out_stride + c] = sum * factors[i];
      }
    }
  } else {
    constexpr int kColumns = kLanes == 8 && n > 4 ? 1 : 2;
    int64_t c = 0;
    for (; c + (kColumns - 1) * kLanes < in.d_value; c += kColumns * kLanes) {
      const auto last = static_cast<int>(std::min<int64_t>(kLanes, in.d_value - c - (kColumns - 1) * kLanes));
      few_values<n, kColumns>(scores, stride, v, sums, f.n, factors, c, last, o, out_stride);
    }
    if (c < in.d_value) {
      few_values<n, 1>(scores, stride, v, sums, f.n, factors, c, static_cast<int>(in.d_value - c), o,
                       out_stride);
    }
  }
  if (f.lse) {
    for (int i = 0; i < f.n; ++i) {
      f.lse[i * f.lse_stride] = total[i] == 0 ? kMinusInfinity : kLn2 * (top[i] + std::log2(total[i]));
    }
  }
}

template <bool kCapped>
HWY_INLINE void forward_few(const AttentionInputs& in, const AttentionOutputs& out, const FewQueries& f,
                            const BlockMask& range, FewMemory& memory) {
  const auto forward = f.n == 1   ? forward_few_of<1, kCapped>
                       : f.n == 2 ? forward_few_of<2, kCapped>
                       : f.n <= 4 ? forward_few_of<4, kCapped>
                       : f.n == 5 ? forward_few_of<5, kCapped>
                                  : forward_few_of<kFewQueries, kCapped>;
  forward(in, out, f, range, memory);
}
/// REQUIRES: 1 <= f.n <= kFewQueries, f.keys <= kFewKeys, no dropout.
HWY_INLINE void forward_few(const AttentionInputs& in, const AttentionOutputs& out, const FewQueries& f,
                            const BlockMask& range, FewMemory& memory) {
  if (in.soft_cap) return forward_few<true>(in, out, f, range, memory);
  forward_few<false>(in, out, f, range, memory);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

#include <algorithm>
#include <cstddef>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/attention_forward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/attention_few-inl.h"
#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/attention_mask-inl.h"
#include "multihead/kernels/attention_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

constexpr int64_t kChunk = 256;  // keys in a strip: 16 KiB of scores

struct Memory {
  detail::Scratch<float> block, strip;
  detail::Scratch<uint16_t> allow, keep;
};

/// The scores of kKeys keys: masked, stored, and met by the running maximum.
template <int kKeys>
HWY_INLINE void score_tile(const float* const* keys, const float* block, int size, const uint16_t* allow,
                           float* HWY_RESTRICT strip, VF (&most)[kVectors]) {
  const DF d;
  VF acc[kKeyTile][kVectors];
  dot_tile<kKeys>(keys, block, size, acc);
  if (allow) {
    MH_UNROLL for (int j = 0; j < kKeys; ++j) {
      MH_UNROLL for (int w = 0; w < kVectors; ++w) {
        acc[j][w] = hn::IfThenElse(block_mask(allow[j], w), acc[j][w], hn::Set(d, kMinusInfinity));
      }
    }
  }
  MH_UNROLL for (int w = 0; w < kVectors; ++w) {
    MH_UNROLL for (int j = 0; j < kKeys; ++j) hn::Store(acc[j][w], d, strip + j * kBlock + w * kLanes);
    VF top = acc[0][w];
    MH_UNROLL for (int j = 1; j < kKeys; ++j) top = hn::Max(top, acc[j][w]);
    most[w] = hn::Max(most[w], top);
  }
}

template <int kKeys>
HWY_INLINE void score_rest(const float* const* keys, int64_t left, const float* block, int size,
                           const uint16_t* allow, float* strip, VF (&most)[kVectors]) {
  if constexpr (kKeys > 0) {
    if (left == kKeys) {
      score_tile<kKeys>(keys, block, size, allow, strip, most);
    } else {
      score_rest<kKeys - 1>(keys, left, block, size, allow, strip, most);
    }
  }
}

/// strip[j] = the scores of keys [0, n) against the block, in units of log 2.
template <bool kIndexed>
HWY_INLINE void score_strip(Rows rows, int64_t n, const float* block, int size, const uint16_t* allow,
                            float* strip, VF (&most)[kVectors]) {
  const float* keys[kKeyTile];
  int64_t j = 0;
  for (; j + kKeyTile <= n; j += kKeyTile) {
    for (int t = 0; t < kKeyTile; ++t) keys[t] = rows.at<kIndexed>(j + t);
    score_tile<kKeyTile>(keys, block, size, allow ? allow + j : nullptr, strip + j * kBlock, most);
  }
  for (int64_t t = j; t < n; ++t) keys[t - j] = rows.at<kIndexed>(t);
  score_rest<kKeyTile - 1>(keys, n - j, block, size, allow ? allow + j : nullptr, strip + j * kBlock, most);
}

/// strip = 2^(strip - most), summed; then 0 where dropout drops.
HWY_INLINE void exponentiate(float* HWY_RESTRICT strip, int64_t n, const uint16_t* keep,
                             const VF (&most)[kVectors], VF (&sum)[kVectors]) {
  const DF d;
  for (int64_t j = 0; j < n; ++j) {
    MH_UNROLL for (int w = 0; w < kVectors; ++w) {
      float* at = strip + j * kBlock + w * kLanes;
      VF p = exp2_vector(hn::Sub(hn::Load(d, at), most[w]));
      sum[w] = hn::Add(sum[w], p);
      if (keep) p = hn::IfThenElseZero(block_mask(keep[j], w), p);
      hn::Store(p, d, at);
    }
  }
}

/// The product P V where V holds NaN or infinity in rows that some queries may not see: 0 times those would
/// leak.
void product_of_allowed(const Product& p, int64_t rows, int64_t columns, const uint16_t* allow) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (int64_t n = 0; n < p.sums; ++n) {
        if (allow[n] >> r & 1) sum += p.a[n * kBlock + r] * p.b.row(n)[c];
      }
      float& out = p.out[r * p.out_stride + c];
      const float factor = p.factors ? p.factors[r] : 1.0f;
      out = p.finish == Finish::kWrite ? factor * sum : factor * out + sum;
    }
  }
}

HWY_INLINE void fill_rows(const MatrixView& out, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  for (int64_t r = row; r < row + rows; ++r) std::fill_n(out.row(r) + column, columns, 0.0f);
}

/// One head of one block of queries.
struct BlockOfHead {
  Rows q, k, v;        // first: the block's first query, the sequence's first key
  int n;               // queries
  int64_t row, first;  // of the block's first query among all, and in its sequence
  int64_t keys;        // of the sequence
  int head;
  size_t sequence;
};

template <bool kIndexed>
HWY_INLINE void forward_block(const AttentionInputs& in, const AttentionOutputs& out, const BlockOfHead& b,
                              const BlockMask& range, const uint16_t* ready, Memory& memory) {
  const DF d;
  const int64_t column = int64_t{b.head} * in.d_value;
  float* block = memory.block.get(int64_t{kBlock} * in.d_key);
  float* strip = memory.strip.get(kBlock * kChunk);
  transpose_block(b.q, b.n, in.d_key, in.scale * kLog2e, block);
  VF most[kVectors], sum[kVectors];
  for (int w = 0; w < kVectors; ++w) {
    most[w] = hn::Set(d, kMinusInfinity);
    sum[w] = hn::Zero(d);
  }
  HWY_ALIGN float factors[kBlock];
  const bool single = range.end - range.begin <= kChunk;
  const float scale = (in.gate.empty() ? 1.0f : in.gate[static_cast<size_t>(b.head)]) *
                      (in.dropout.active() ? in.dropout.keep_scale() : 1.0f);
  const auto final_factors = [&]() HWY_ATTR {
    for (int w = 0; w < kVectors; ++w) {
      const auto none = hn::Eq(sum[w], hn::Zero(d));
      hn::Store(hn::IfThenZeroElse(none, hn::Div(hn::Set(d, scale), sum[w])), d, factors + w * kLanes);
    }
  };
  for (int64_t j = range.begin; j < range.end; j += kChunk) {
    const int64_t end = std::min(range.end, j + kChunk), n = end - j;
    const uint16_t* allow = nullptr;
    if (range.dense || j < range.full_begin || end > range.full_end) {
      allow = ready;
      if (!allow) {
        uint16_t* bits = memory.allow.get(kChunk);
        allow_bits(in.mask, range, b.row, b.n, j, end, bits);
        allow = bits;
      }
    }
    uint16_t* keep = nullptr;
    if (in.dropout.active()) {
      keep = memory.keep.get(kChunk + 16);
      keep_bits(in.dropout, in.dropout.sentences[b.sequence], b.head, b.first, j, end, keep);
    }
    VF before[kVectors], safe[kVectors];
    for (int w = 0; w < kVectors; ++w) before[w] = most[w];
    score_strip<kIndexed>(b.k.from(j), n, block, in.d_key, allow, strip, most);
    for (int w = 0; w < kVectors; ++w) {
      safe[w] = hn::IfThenZeroElse(hn::Eq(most[w], hn::Set(d, kMinusInfinity)), most[w]);
      if (j > range.begin) {
        const auto rescale = exp2_vector(hn::Sub(before[w], safe[w]));
        sum[w] = hn::Mul(sum[w], rescale);
        hn::Store(rescale, d, factors + w * kLanes);
      }
    }
    exponentiate(strip, n, keep, safe, sum);
    if (single) final_factors();
    const Rows v = b.v.from(j);
    const bool first = j == range.begin;
    const Product product_of_v{strip,
                               0,
                               v,
                               n,
                               out.output.row(b.row) + column,
                               out.output.stride,
                               first ? Finish::kWrite : Finish::kAdd,
                               first && !single ? nullptr : factors};
    if (allow && !all_finite(v, n, in.d_value)) {
      product_of_allowed(product_of_v, b.n, in.d_value, allow);
    } else {
      product<OverKeys, kIndexed>(product_of_v, b.n, in.d_value);
    }
  }
  if (range.begin == range.end) fill_rows(out.output, b.row, b.n, column, in.d_value);
  if (!single) {
    final_factors();
    for (int i = 0; i < b.n; ++i) {
      float* o = out.output.row(b.row + i) + column;
      for (int64_t c = 0; c < in.d_value; ++c) o[c] *= factors[i];
    }
  }
  if (out.lse) {
    for (int w = 0; w < kVectors; ++w) {
      const auto safe = hn::IfThenZeroElse(hn::Eq(most[w], hn::Set(d, kMinusInfinity)), most[w]);
      hn::Store(hn::Mul(hn::Add(safe, log2_vector(sum[w])), hn::Set(d, kLn2)), d, factors + w * kLanes);
    }
    for (int i = 0; i < b.n; ++i) out.lse[(b.row + i) * in.heads + b.head] = factors[i];
  }
}

/// Asks for the rows of the item after this one: short pieces of rows far apart, which no hardware foresees.
/// With few queries there is too little to compute to hide the wait; with many it gains nothing.
HWY_INLINE void prefetch_next(const AttentionInputs& in, const detail::AttentionTask& task, size_t s, int h,
                              int64_t first) {
  bool with_keys = first == task.query_begin;
  if (++h == task.head_end) {
    if (++s >= static_cast<size_t>(task.sequence_end)) return;
    h = task.head_begin;
    first = 0;
    with_keys = true;
  }
  const int64_t row = in.query_offsets[s] + first;
  const int64_t queries = std::min<int64_t>(in.query_offsets[s + 1] - row, kBlock);
  prefetch_rows({in.q.row(row) + int64_t{h} * in.d_key, in.q.stride}, queries, in.d_key);
  const int64_t key = in.key_offsets[s], keys = in.key_offsets[s + 1] - key;
  if (!with_keys || keys > 64) return;
  const bool indexed = !in.key_rows.empty();
  const int32_t* index = indexed ? in.key_rows.data() + key : nullptr;
  const int64_t first_row = indexed ? 0 : key;
  prefetch_rows({in.k.row(first_row) + int64_t{h} * in.key_heads / in.heads * in.d_key, in.k.stride, index},
                keys, in.d_key);
  prefetch_rows(
      {in.v.row(first_row) + int64_t{h} * in.value_heads / in.heads * in.d_value, in.v.stride, index}, keys,
      in.d_value);
}

/// The weights of a block, from scores computed again: who wants weights does not change the output.
void weights_block(const AttentionInputs& in, const BlockOfHead& b, const BlockMask& range, float* weights,
                   Memory& memory) {
  const DF d;
  for (int i = 0; i < b.n; ++i) std::fill_n(weights + i * b.keys, b.keys, 0.0f);
  const int64_t n = range.end - range.begin;
  if (n == 0) return;
  float* block = memory.block.get(int64_t{kBlock} * in.d_key);
  float* strip = memory.strip.get(kBlock * std::max(n, kChunk));
  transpose_block(b.q, b.n, in.d_key, in.scale * kLog2e, block);
  uint16_t* allow = nullptr;
  if (range.dense || range.cut()) {
    allow = memory.allow.get(std::max(n, kChunk));
    allow_bits(in.mask, range, b.row, b.n, range.begin, range.end, allow);
  }
  VF most[kVectors], sum[kVectors];
  for (int w = 0; w < kVectors; ++w) {
    most[w] = hn::Set(d, kMinusInfinity);
    sum[w] = hn::Zero(d);
  }
  const Rows k = b.k.from(range.begin);
  if (k.index) {
    score_strip<true>(k, n, block, in.d_key, allow, strip, most);
  } else {
    score_strip<false>(k, n, block, in.d_key, allow, strip, most);
  }
  for (auto& m : most) m = hn::IfThenZeroElse(hn::Eq(m, hn::Set(d, kMinusInfinity)), m);
  exponentiate(strip, n, nullptr, most, sum);
  HWY_ALIGN float factors[kBlock];
  for (int w = 0; w < kVectors; ++w) {
    hn::Store(hn::IfThenZeroElse(hn::Eq(sum[w], hn::Zero(d)), hn::Div(hn::Set(d, 1.0f), sum[w])), d,
              factors + w * kLanes);
  }
  for (int64_t j = 0; j < n; ++j) {
    for (int i = 0; i < b.n; ++i) weights[i * b.keys + range.begin + j] = strip[j * kBlock + i] * factors[i];
  }
}

}  // namespace

void forward_task(const AttentionInputs& in, const AttentionOutputs& out, const detail::AttentionTask& task,
                  const int64_t* weight_offsets) {
  thread_local Memory memory;
  thread_local FewMemory few_memory;
  for (auto s = static_cast<size_t>(task.sequence_begin); s < static_cast<size_t>(task.sequence_end); ++s) {
    const int64_t row = in.query_offsets[s], queries = in.query_offsets[s + 1] - row;
    const int64_t key = in.key_offsets[s], keys = in.key_offsets[s + 1] - key;
    const bool indexed = !in.key_rows.empty();
    const int32_t* index = indexed ? in.key_rows.data() + key : nullptr;
    const int64_t first_row = indexed ? 0 : key;
    const int64_t end = std::min(queries, task.query_end);
    for (int64_t i = task.query_begin; i < end; i += kBlock) {
      BlockOfHead b;
      b.n = static_cast<int>(std::min<int64_t>(kBlock, end - i));
      b.row = row + i;
      b.first = i;
      b.keys = keys;
      b.sequence = s;
      BlockMask range;
      block_range(in.mask, i, b.n, queries, keys, range);
      const bool few = b.n <= kFewQueries && keys <= kFewKeys && !in.dropout.active();
      const uint16_t* ready = nullptr;  // the mask's bits serve all heads
      if (!few && (range.dense || range.cut()) && range.end - range.begin <= kChunk) {
        uint16_t* bits = memory.allow.get(kChunk);
        allow_bits(in.mask, range, b.row, b.n, range.begin, range.end, bits);
        ready = bits;
      }
      for (int h = task.head_begin; h < task.head_end; ++h) {
        const int64_t key_head = int64_t{h} * in.key_heads / in.heads;
        const int64_t value_head = int64_t{h} * in.value_heads / in.heads;
        b.head = h;
        b.q = {in.q.row(row + i) + int64_t{h} * in.d_key, in.q.stride};
        b.k = {in.k.row(first_row) + key_head * in.d_key, in.k.stride, index};
        b.v = {in.v.row(first_row) + value_head * in.d_value, in.v.stride, index};
        if (few) {
          prefetch_next(in, task, s, h, i);
          const FewQueries f{b.q, b.k, b.v, b.n, b.row, i, queries, keys, h};
          forward_few(in, out, f, range, few_memory);
        } else if (indexed) {
          forward_block<true>(in, out, b, range, ready, memory);
        } else {
          forward_block<false>(in, out, b, range, ready, memory);
        }
      }
      if (!weight_offsets) continue;
      for (int h = task.head_begin; h < task.head_end; ++h) {
        b.head = h;
        b.q = {in.q.row(row + i) + int64_t{h} * in.d_key, in.q.stride};
        b.k = {in.k.row(first_row) + int64_t{h} * in.key_heads / in.heads * in.d_key, in.k.stride, index};
        float* weights = out.weights + in.heads * weight_offsets[s] + (h * queries + i) * keys;
        weights_block(in, b, range, weights, memory);
      }
    }
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

namespace mh {
HWY_EXPORT(forward_task);

void attention_forward(const AttentionInputs& in, const AttentionOutputs& out) {
  detail::check_attention(in, "attention_forward");
  const int64_t columns = int64_t{in.heads} * in.d_value;
  if (out.output.rows != in.q.rows || out.output.cols != columns || (in.q.rows > 0 && !out.output.data)) {
    throw ShapeError(fmt::format("attention_forward: output is [{},{}], expected [{},{}]", out.output.rows,
                                 out.output.cols, in.q.rows, columns));
  }
  const int64_t* weight_offsets = nullptr;
  if (out.weights) {
    thread_local std::vector<int64_t> offsets;
    offsets.assign(1, 0);
    for (size_t s = 0; s + 1 < in.query_offsets.size(); ++s) {
      offsets.push_back(offsets.back() + int64_t{in.query_offsets[s + 1] - in.query_offsets[s]} *
                                             (in.key_offsets[s + 1] - in.key_offsets[s]));
    }
    weight_offsets = offsets.data();
  }
  const auto& tasks = detail::attention_tasks(in, false);
  parallel_for(static_cast<int64_t>(tasks.size()), [&](int64_t task) {
    HWY_DYNAMIC_DISPATCH(forward_task)(in, out, tasks[static_cast<size_t>(task)], weight_offsets);
  });
}

}  // namespace mh
#endif

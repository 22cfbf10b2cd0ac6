// Part of the attention kernel's backward pass: one head, and a block of its queries.
#if defined(MULTIHEAD_KERNELS_ATTENTION_GRADIENT_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_BLOCK_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_BLOCK_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_GRADIENT_BLOCK_INL_H_
#endif

#include <algorithm>

#include "multihead/base/aligned.h"
#include "multihead/kernels/attention_bias-inl.h"
#include "multihead/kernels/attention_cap-inl.h"
#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/attention_mask-inl.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/attention_stored_rows-inl.h"
#include "multihead/kernels/attention_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

constexpr int64_t kKeyChunk = 128;  // keys of a chunk, which a block of queries reads at once
constexpr int kStrips = 4;          // strips of 16 queries in a block
constexpr int64_t kQueries = kStrips * kBlock;
static_assert(kQueries == detail::kBackwardQueries);
constexpr int64_t kStripSize = kBlock * (kKeyChunk + kRoom);

struct GradientMemory {
  AlignedBuffer<float> queries, gradients, p, ds;         // strips
  AlignedBuffer<float> k, v, q, d_output, d_k, d_v, d_q;  // rows, side by side
  AlignedBuffer<uint16_t> allow, keep;
  AlignedBuffer<float> distances, by_query;
  AlignedBuffer<float> slopes;  // a strip of what the cap does to gradients
  BiasMemory bias;
};

/// The gradients to which a block of queries and a chunk of keys adds, or which it overwrites as the first.
struct Target {
  float* data;
  int64_t stride;
  bool add;

  Target from(int64_t row) const { return {data + row * stride, stride, add}; }
};

/// One head of one sequence; row 0 of each Rows is the first row of the sequence.
struct Head {
  Rows q, k, v, d_output, output;
  const float* lse;  // of the first query
  int64_t lse_stride;
  int64_t queries, keys;
  int64_t row;  // of the first query among all
  int head;
  size_t sequence;
  float gate;
  const HeadBias* bias = nullptr;
  HeadBiasGradient d_bias;
};

inline void fill_zero(float* data, int64_t stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(data + r * stride, columns, 0.0f);
}

/// Up to 64 queries of a head.
struct Block {
  int64_t first, n;  // queries of the sequence
  int strips;
  BlockMask mask[kStrips];
  float* queries;                   // [strips][d_key][16], scaled by product_factor()
  float* gradients;                 // [strips][d_value][16]
  Rows q, d_output;                 // rows of the block
  HWY_ALIGN float lse[kQueries];    // in units of log 2
  HWY_ALIGN float delta[kQueries];  // scale * gate * delta
  bool finite_known = false, finite = false;

  int lanes(int strip) const { return static_cast<int>(std::min<int64_t>(kBlock, n - strip * kBlock)); }
};

/// The factors that turn scores and products into weights and gradients.
struct Rule {
  float factor;         // scale * gate; only gate when there is a bias, whose gradient is not scaled
  float delta_scale;    // the same factor for g delta
  float weight_factor;  // gate / (1 - dropout rate)
  float keep_scale;
  bool raw;        // the tiles leave scores and dP as they are; combine_strip does the rest
  bool own_delta;  // a chunk has all keys: delta is summed there, the output need not be read
  float cap;       // cap_of() the scores
};

HWY_INLINE float dot(const float* a, const float* b, int size) {
  const DF d;
  auto sum = hn::Zero(d);
  int c = 0;
  for (; c + kLanes <= size; c += kLanes) sum = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), sum);
  if (c < size) sum = hn::MulAdd(load_first(a + c, size - c), load_first(b + c, size - c), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// Fills a block: its transposed queries and gradients, lse and delta.
HWY_NOINLINE inline void prepare_block(const AttentionInputs& in, const Head& h, int64_t first, bool copied,
                                       const Rule& rule, Block& b, GradientMemory& memory) {
  b.first = first;
  b.n = std::min(kQueries, h.queries - first);
  b.strips = static_cast<int>((b.n + kBlock - 1) / kBlock);
  b.q = h.q.from(first);
  b.d_output = h.d_output.from(first);
  b.finite_known = false;
  b.queries = memory.queries.get(kQueries * in.d_key);
  b.gradients = memory.gradients.get(kQueries * in.d_value);
  if (copied) {
    const int64_t k_stride = copied_stride(in.d_key), v_stride = copied_stride(in.d_value);
    float* q = memory.q.get(kQueries * k_stride);
    float* d_output = memory.d_output.get(kQueries * v_stride);
    copy_rows(b.q, b.n, in.d_key, q, k_stride);
    copy_rows(b.d_output, b.n, in.d_value, d_output, v_stride);
    b.q = {q, k_stride};
    b.d_output = {d_output, v_stride};
  }
  for (int s = 0; s < b.strips; ++s) {
    const int lanes = b.lanes(s);
    transpose_block(b.q.from(int64_t{s} * kBlock), lanes, in.d_key, product_factor(in),
                    b.queries + int64_t{s} * kBlock * in.d_key);
    transpose_block(b.d_output.from(int64_t{s} * kBlock), lanes, in.d_value, 1.0f,
                    b.gradients + int64_t{s} * kBlock * in.d_value);
  }
  for (int64_t i = 0; i < b.strips * kBlock; ++i) {
    b.lse[i] = b.delta[i] = 0;
    if (i >= b.n) continue;
    const float lse = h.lse[(first + i) * h.lse_stride];
    b.lse[i] = lse == kMinusInfinity ? 0 : lse * kLog2e;
    if (!rule.own_delta)
      b.delta[i] = rule.delta_scale * dot(b.d_output.row(i), h.output.row(first + i), in.d_value);
  }
}

HWY_INLINE void mask_block(const AttentionInputs& in, const Head& h, Block& b, int64_t first) {
  const int64_t n = std::min(kQueries, h.queries - first);
  for (int64_t i = 0; i < n; i += kBlock) {
    block_range(in.mask, first + i, static_cast<int>(std::min<int64_t>(kBlock, n - i)), h.queries, h.keys,
                b.mask[i / kBlock]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

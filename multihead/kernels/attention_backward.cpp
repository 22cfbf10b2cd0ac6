#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/attention_backward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/attention_bias-inl.h"
#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/attention_mask-inl.h"
#include "multihead/kernels/attention_tiles-inl.h"

// With P the weights, Z the dropout (0 or 1 / (1 - rate)), g the gate, and O' = (P Z) V the ungated output:
//   dV = g (P Z)^T dO     dP = Z (dO V^T)     delta_i = sum_j P_ij dP_ij = dO_i . O'_i
//   dS = g P (dP - delta)     dQ = scale dS K     dK = scale dS^T Q     dg = sum_i delta_i
// While all keys fit in a chunk, delta is that sum over j; else g delta = dO . output, so no division
// happens. dg adds P dP up, which is right for a gate of 0 too.
#ifndef MULTIHEAD_KERNELS_ATTENTION_BACKWARD_PARTS
#define MULTIHEAD_KERNELS_ATTENTION_BACKWARD_PARTS
namespace mh {

/// What tasks leave to be summed in the order of the parts; null: not wanted.
struct BackwardParts {
  float* gates;      // [parts, H]
  float* distances;  // [parts, H, columns]: of a slope, and of each column of by_distance
  int64_t columns;
  const int64_t* weight_offsets;  // [S], with bias.elements
};

}  // namespace mh
#endif

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

constexpr int64_t kKeyChunk = 128;  // keys that a block of queries meets at once
constexpr int kStrips = 4;          // strips of 16 queries in a block
constexpr int64_t kQueries = kStrips * kBlock;
static_assert(kQueries == detail::kBackwardQueries);
constexpr int64_t kStripSize = kBlock * (kKeyChunk + kRoom);

struct Memory {
  detail::Scratch<float> queries, gradients, p, ds;         // strips
  detail::Scratch<float> k, v, q, d_output, d_k, d_v, d_q;  // rows, side by side
  detail::Scratch<uint16_t> allow, keep;
  detail::Scratch<float> distances, by_query;
  BiasMemory bias;
};

/// Gradients that a block of queries and a chunk of keys adds to (or begins).
struct Target {
  float* data;
  int64_t stride;
  bool add;

  Target from(int64_t row) const { return {data + row * stride, stride, add}; }
};

/// One head of one sequence; rows start with the sequence's first.
struct Head {
  Rows q, k, v, d_output, output;
  const float* lse;  // of the first query; heads apart
  int64_t queries, keys;
  int64_t row;  // of the first query among all
  int head;
  size_t sequence;
  float gate;
  const HeadBias* bias = nullptr;
  HeadBiasGradient d_bias;
};

/// Up to 64 queries of a head.
struct Block {
  int64_t first, n;  // queries of the sequence
  int strips;
  BlockMask mask[kStrips];
  float* queries;                   // [strips][d_key][16], scaled for powers of two
  float* gradients;                 // [strips][d_value][16]
  Rows q, d_output;                 // rows of the block
  HWY_ALIGN float lse[kQueries];    // in units of log 2
  HWY_ALIGN float delta[kQueries];  // scale * gate * delta
  bool finite_known = false, finite = false;

  int lanes(int strip) const { return static_cast<int>(std::min<int64_t>(kBlock, n - strip * kBlock)); }
};

/// What turns scores and products into weights and gradients.
struct Rule {
  float factor;         // scale * gate; gate alone with a bias, whose gradient knows no scale
  float delta_scale;    // what multiplies g delta likewise
  float weight_factor;  // gate / (1 - dropout rate)
  float keep_scale;
  bool raw;        // the tiles leave scores and dP as they are; combine_strip does the rest
  bool own_delta;  // a chunk has all keys: delta is summed there, the output need not be read
};

/// P and dS of keys [0, n) against kWide strips of a block; both strips begin at the first key.
template <int kWide>
HWY_NOINLINE void weight_strips(const Block& b, int first, Rows keys, Rows values, int64_t n, int64_t d_key,
                                int64_t d_value, const Rule& rule, float* HWY_RESTRICT p,
                                float* HWY_RESTRICT ds, Ahead& ahead) {
  const DF d;
  constexpr int kKeys = kTileKeys<kWide>, kWidth = kWide * kVectors;
  const float* HWY_RESTRICT lse = b.lse + first * kBlock;
  const float* HWY_RESTRICT delta = b.delta + first * kBlock;
  const auto factor = hn::Set(d, rule.factor);
  for (int64_t j = 0; j < n; j += kKeys) {
    ahead.ask();
    const float* HWY_RESTRICT tile[kKeys];
    VF acc[kKeys][kWidth];
    tile_rows(keys, j, n, tile);
    dot_tile<kWide>(tile, b.queries + first * kBlock * d_key, d_key, acc);
    MH_UNROLL for (int w = 0; w < kWidth; ++w) {
      float* at = p + w / kVectors * kStripSize + j * kBlock + w % kVectors * kLanes;
      if (rule.raw) {
        MH_UNROLL for (int t = 0; t < kKeys; ++t) hn::Store(acc[t][w], d, at + t * kBlock);
      } else {
        const auto subtracted = hn::Load(d, lse + w * kLanes);
        MH_UNROLL for (int t = 0; t < kKeys; ++t) {
          hn::Store(exp2_vector(hn::Sub(acc[t][w], subtracted)), d, at + t * kBlock);
        }
      }
    }
    tile_rows(values, j, n, tile);
    dot_tile<kWide>(tile, b.gradients + first * kBlock * d_value, d_value, acc);
    MH_UNROLL for (int w = 0; w < kWidth; ++w) {
      const int64_t at = w / kVectors * kStripSize + j * kBlock + w % kVectors * kLanes;
      if (rule.raw) {
        MH_UNROLL for (int t = 0; t < kKeys; ++t) hn::Store(acc[t][w], d, ds + at + t * kBlock);
      } else {
        const auto subtracted = hn::Load(d, delta + w * kLanes);
        MH_UNROLL for (int t = 0; t < kKeys; ++t) {
          const auto difference = hn::MulSub(acc[t][w], factor, subtracted);
          hn::Store(hn::Mul(hn::Load(d, p + at + t * kBlock), difference), d, ds + at + t * kBlock);
        }
      }
    }
  }
}

HWY_INLINE void weight_strips(int strips, const Block& b, int first, Rows keys, Rows values, int64_t n,
                              int64_t d_key, int64_t d_value, const Rule& rule, float* p, float* ds,
                              Ahead& ahead) {
  if constexpr (kGroups == 1) {
    for (int s = 0; s < strips; ++s) {
      weight_strips<1>(b, first + s, keys, values, n, d_key, d_value, rule, p + s * kStripSize,
                       ds + s * kStripSize, ahead);
    }
  } else {
    const auto weights = strips == 4   ? weight_strips<4>
                         : strips == 3 ? weight_strips<3>
                         : strips == 2 ? weight_strips<2>
                                       : weight_strips<1>;
    weights(b, first, keys, values, n, d_key, d_value, rule, p, ds, ahead);
  }
}

/// Scores and dP of n keys become weights (gate and dropout in them) and dS. delta: null if these are all
/// keys, so that it comes from them. Returns the strip's part of dg.
HWY_NOINLINE inline float combine_strip(const Rule& rule, const float* lse, const float* delta, int lanes,
                                        const uint16_t* allow, const uint16_t* keep, int64_t n,
                                        float* HWY_RESTRICT p, float* HWY_RESTRICT ds) {
  const DF d;
  HWY_ALIGN float gates[kBlock];
  const auto factor = hn::Set(d, rule.factor), weight_factor = hn::Set(d, rule.weight_factor);
  for (int w = 0; w < kVectors; ++w) {
    const auto base = hn::Load(d, lse + w * kLanes);
    auto gate = hn::Zero(d);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = j * kBlock + w * kLanes;
      VF weight = exp2_vector(hn::Sub(hn::Load(d, p + at), base));
      VF dp = hn::Load(d, ds + at);
      if (keep) dp = hn::IfThenElseZero(block_mask(keep[j], w), hn::Mul(dp, hn::Set(d, rule.keep_scale)));
      if (allow) {
        const auto seen = block_mask(allow[j], w);
        dp = hn::IfThenElseZero(seen, dp);
        weight = hn::IfThenElseZero(seen, weight);
      }
      gate = hn::MulAdd(weight, dp, gate);
      hn::Store(weight, d, p + at);
      hn::Store(dp, d, ds + at);
    }
    hn::Store(gate, d, gates + w * kLanes);
    const auto subtracted = delta ? hn::Load(d, delta + w * kLanes) : hn::Mul(gate, factor);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = j * kBlock + w * kLanes;
      VF weight = hn::Load(d, p + at);
      VF score = hn::Mul(weight, hn::MulSub(hn::Load(d, ds + at), factor, subtracted));
      // A row's delta may be NaN by what that row sees; behind the mask nothing may be.
      if (allow) score = hn::IfThenElseZero(block_mask(allow[j], w), score);
      weight = hn::Mul(weight, weight_factor);
      if (keep) weight = hn::IfThenElseZero(block_mask(keep[j], w), weight);
      hn::Store(weight, d, p + at);
      hn::Store(score, d, ds + at);
    }
  }
  float sum = 0;
  for (int i = 0; i < lanes; ++i) sum += gates[i];
  return sum;
}

HWY_NOINLINE inline void scale_strip(float* HWY_RESTRICT strip, int64_t n, float scale) {
  for (int64_t i = 0; i < n * kBlock; ++i) strip[i] *= scale;
}

/// 0 where a query may not see a key.
HWY_NOINLINE inline void mask_strip(const uint16_t* allow, int64_t n, float* HWY_RESTRICT p,
                                    float* HWY_RESTRICT ds) {
  const DF d;
  for (int64_t j = 0; j < n; ++j) {
    for (int w = 0; w < kVectors; ++w) {
      const auto seen = block_mask(allow[j], w);
      const int64_t at = j * kBlock + w * kLanes;
      hn::Store(hn::IfThenElseZero(seen, hn::Load(d, p + at)), d, p + at);
      hn::Store(hn::IfThenElseZero(seen, hn::Load(d, ds + at)), d, ds + at);
    }
  }
}

HWY_INLINE float dot(const float* a, const float* b, int size) {
  const DF d;
  auto sum = hn::Zero(d);
  int c = 0;
  for (; c + kLanes <= size; c += kLanes) sum = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), sum);
  if (c < size) sum = hn::MulAdd(load_first(a + c, size - c), load_first(b + c, size - c), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// Sums that leave out what is masked, since 0 times a NaN or an infinity there would leak.
/// over_keys: out[i] += sum over keys; else out[j] += sum over queries.
HWY_NOINLINE inline void product_of_allowed(const AttentionInputs& in, const Head& h, const Block& block,
                                            const float* strips, int64_t begin, int64_t keys, bool over_keys,
                                            Rows b, int64_t columns, const Target& to) {
  const int64_t rows = over_keys ? block.n : keys, sums = over_keys ? keys : block.n;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (int64_t n = 0; n < sums; ++n) {
        const int64_t i = over_keys ? r : n, j = over_keys ? n : r;
        if (in.mask.allows(h.row + block.first + i, block.first + i, begin + j, h.queries, h.keys)) {
          sum += strips[i / kBlock * kStripSize + j * kBlock + i % kBlock] * b.row(n)[c];
        }
      }
      float& out = to.data[r * to.stride + c];
      out = to.add ? out + sum : sum;
    }
  }
}

void fill_zero(float* data, int64_t stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(data + r * stride, columns, 0.0f);
}

/// Keys [begin, end) of a chunk, first rows at key `begin`.
struct Chunk {
  int64_t begin, end;
  Rows k, v;
};

/// A block meets a chunk. Returns their part of dg.
HWY_NOINLINE inline float meet(const AttentionInputs& in, const Head& h, Block& b, const Chunk& chunk,
                               const Rule& rule, const Target& d_q, const Target& d_k, const Target& d_v,
                               Ahead& ahead, Memory& memory) {
  float* const p = memory.p.get(kStrips * kStripSize);
  float* const ds = memory.ds.get(kStrips * kStripSize);
  int64_t from[kStrips], to[kStrips];
  bool cut = false;
  for (int s = 0; s < b.strips; ++s) {
    from[s] = std::max(chunk.begin, b.mask[s].begin);
    to[s] = std::max(from[s], std::min(chunk.end, b.mask[s].end));
    cut = cut || (from[s] < to[s] && b.mask[s].cuts(from[s], to[s]));
  }
  for_each_part(from, to, b.strips, chunk.begin, chunk.end,
                [&](int64_t j, int64_t n, int a, int strips) HWY_ATTR {
                  if (strips == 0) return;
                  const int64_t at = a * kStripSize + j * kBlock;
                  weight_strips(strips, b, a, chunk.k.from(j), chunk.v.from(j), n, in.d_key, in.d_value, rule,
                                p + at, ds + at, ahead);
                });
  float gate_gradient = 0;
  for (int s = 0; s < b.strips && (cut || rule.raw); ++s) {
    const int64_t n = to[s] - from[s], first = b.first + s * kBlock;
    if (n == 0) continue;
    const int64_t at = s * kStripSize + (from[s] - chunk.begin) * kBlock;
    const bool strip_cut = b.mask[s].cuts(from[s], to[s]);
    uint16_t* allow = strip_cut ? memory.allow.get(kKeyChunk) : nullptr;
    if (rule.raw) {
      uint16_t* keep = nullptr;
      if (in.dropout.active()) {
        keep = memory.keep.get(kKeyChunk + 16);
        keep_bits(in.dropout, in.dropout.sentences[h.sequence], h.head, first, from[s], to[s], keep);
      }
      if (h.bias) add_bias(*h.bias, first, b.lanes(s), from[s], to[s], p + at);
      if (allow) allow_bits(in.mask, b.mask[s], h.row + first, b.lanes(s), from[s], to[s], allow);
      gate_gradient +=
          combine_strip(rule, b.lse + s * kBlock, rule.own_delta ? nullptr : b.delta + s * kBlock, b.lanes(s),
                        allow, keep, n, p + at, ds + at);
      if (h.bias) {
        add_bias_gradient(*h.bias, h.d_bias, b.first, first, b.lanes(s), from[s], to[s], ds + at);
        scale_strip(ds + at, n, in.scale);
      }
    } else if (allow) {
      for_cut_keys(b.mask[s], from[s], to[s], [&](int64_t begin, int64_t end) HWY_ATTR {
        allow_bits(in.mask, b.mask[s], h.row + first, b.lanes(s), begin, end, allow);
        const int64_t skip = (begin - from[s]) * kBlock;
        mask_strip(allow, end - begin, p + at + skip, ds + at + skip);
      });
    }
  }
  if (cut) {
    if (!b.finite_known) {
      b.finite = all_finite(b.q, b.n, in.d_key) && all_finite(b.d_output, b.n, in.d_value);
      b.finite_known = true;
    }
    const int64_t keys = chunk.end - chunk.begin;
    if (!b.finite || !all_finite(chunk.k, keys, in.d_key)) {
      product_of_allowed(in, h, b, ds, chunk.begin, keys, true, chunk.k, in.d_key, d_q);
      product_of_allowed(in, h, b, ds, chunk.begin, keys, false, b.q, in.d_key, d_k);
      product_of_allowed(in, h, b, p, chunk.begin, keys, false, b.d_output, in.d_value, d_v);
      return gate_gradient;
    }
  }
  for_each_part(
      from, to, b.strips, chunk.begin, chunk.end, [&](int64_t j, int64_t n, int a, int strips) HWY_ATTR {
        const Target to_k = d_k.from(j), to_v = d_v.from(j);
        if (strips == 0) {
          if (!d_k.add) fill_zero(to_k.data, to_k.stride, n, in.d_key);
          if (!d_v.add) fill_zero(to_v.data, to_v.stride, n, in.d_value);
          return;
        }
        const int64_t at = a * kStripSize + j * kBlock;
        const int64_t sums = std::min(b.n, int64_t{a + strips} * kBlock) - a * kBlock;
        product<OverQueries>(
            {p + at, kStripSize, b.d_output.from(a * kBlock), sums, to_v.data, to_v.stride, to_v.add}, n,
            in.d_value);
        product<OverQueries>(
            {ds + at, kStripSize, b.q.from(a * kBlock), sums, to_k.data, to_k.stride, to_k.add}, n, in.d_key);
      });
  for (int s = 0; s < b.strips; ++s) {
    const int64_t n = to[s] - from[s], j = from[s] - chunk.begin;
    const Target out = d_q.from(int64_t{s} * kBlock);
    if (n == 0) {
      if (!out.add) fill_zero(out.data, out.stride, b.lanes(s), in.d_key);
      continue;
    }
    product<OverKeys>(
        {ds + s * kStripSize + j * kBlock, 0, chunk.k.from(j), n, out.data, out.stride, out.add}, b.lanes(s),
        in.d_key);
  }
  return gate_gradient;
}

/// What a block needs besides its rows.
HWY_NOINLINE inline void prepare_block(const AttentionInputs& in, const Head& h, int64_t first, bool copied,
                                       const Rule& rule, Block& b, Memory& memory) {
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
    transpose_block(b.q.from(int64_t{s} * kBlock), lanes, in.d_key, in.scale * kLog2e,
                    b.queries + int64_t{s} * kBlock * in.d_key);
    transpose_block(b.d_output.from(int64_t{s} * kBlock), lanes, in.d_value, 1.0f,
                    b.gradients + int64_t{s} * kBlock * in.d_value);
  }
  for (int64_t i = 0; i < b.strips * kBlock; ++i) {
    b.lse[i] = b.delta[i] = 0;
    if (i >= b.n) continue;
    const float lse = h.lse[(first + i) * in.heads];
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

/// Waits until `turn` holds `number`: parts of a gradient are added in the order of their keys, whichever
/// thread computes them. Tasks start in that order, so the one waited for is done or being done.
void wait_for_turn(const std::atomic<int32_t>& turn, int32_t number) {
  for (int spin = 0; turn.load(std::memory_order_acquire) != number; ++spin) {
    if (spin > 100) std::this_thread::yield();
  }
}

/// Adds the first rows of what comes after a head of a task: as much as can be asked for early.
HWY_INLINE void add_next_item(const AttentionInputs& in, const AttentionGradients& g,
                              const detail::BackwardTask& task, size_t s, int head,
                              const detail::BackwardTask* next_task, Ahead& ahead) {
  int64_t begin = task.key_begin, end = task.key_end;
  if (++head == task.head_end) {
    head = task.head_begin;
    if (++s == static_cast<size_t>(task.sequence_end)) {
      if (!next_task) return;
      s = static_cast<size_t>(next_task->sequence_begin);
      head = next_task->head_begin;
      begin = next_task->key_begin;
      end = next_task->key_end;
    }
  }
  const int64_t row = in.query_offsets[s], queries = std::min(in.query_offsets[s + 1] - row, kQueries);
  const int64_t key = in.key_offsets[s] + begin,
                keys = std::min<int64_t>(in.key_offsets[s + 1], end + key) - key;
  const int64_t q = int64_t{head} * in.d_key, o = int64_t{head} * in.d_value;
  const int64_t k = int64_t{head} * in.key_heads / in.heads * in.d_key;
  const int64_t v = int64_t{head} * in.value_heads / in.heads * in.d_value;
  ahead.add({in.k.row(key) + k, in.k.stride}, keys, in.d_key);
  ahead.add({in.v.row(key) + v, in.v.stride}, keys, in.d_value);
  ahead.add({in.q.row(row) + q, in.q.stride}, queries, in.d_key);
  ahead.add({g.d_output.row(row) + o, g.d_output.stride}, queries, in.d_value);
  ahead.add({g.output.row(row) + o, g.output.stride}, queries, in.d_value);
}

/// Asks for all that a small item after this one reads and writes.
HWY_INLINE void prefetch_next_small(const AttentionInputs& in, const AttentionGradients& g,
                                    const detail::BackwardTask& task, size_t s, int head) {
  if (++head == task.head_end) {
    if (++s >= static_cast<size_t>(task.sequence_end)) return;
    head = task.head_begin;
  }
  const int64_t row = in.query_offsets[s], queries = in.query_offsets[s + 1] - row;
  const int64_t key = in.key_offsets[s], keys = in.key_offsets[s + 1] - key;
  if (queries > kQueries || keys > kKeyChunk) return;
  const int64_t q = int64_t{head} * in.d_key, o = int64_t{head} * in.d_value;
  const int64_t k = int64_t{head} * in.key_heads / in.heads * in.d_key;
  const int64_t v = int64_t{head} * in.value_heads / in.heads * in.d_value;
  prefetch_rows({in.q.row(row) + q, in.q.stride}, queries, in.d_key);
  prefetch_rows({in.k.row(key) + k, in.k.stride}, keys, in.d_key);
  prefetch_rows({in.v.row(key) + v, in.v.stride}, keys, in.d_value);
  prefetch_rows({g.d_output.row(row) + o, g.d_output.stride}, queries, in.d_value);
  prefetch_rows({g.d_q.row(row) + q, g.d_q.stride}, queries, in.d_key);
  prefetch_rows({g.d_k.row(key) + k, g.d_k.stride}, keys, in.d_key);
  prefetch_rows({g.d_v.row(key) + v, g.d_v.stride}, keys, in.d_value);
}

/// The bias of a head and where its gradients from keys [begin, end) go.
void begin_bias(const AttentionInputs& in, const AttentionBiasGradients& g, int64_t begin, int64_t end,
                int64_t weight_offset, Head& h, HeadBias& bias, Memory& memory) {
  bias = head_bias(in, h.row, h.head, 0, h.queries, h.queries, h.keys, weight_offset, memory.bias);
  h.bias = &bias;
  h.d_bias = {};
  if (g.slopes || g.by_distance) {
    const int64_t size = h.queries + kBlock + h.keys;
    h.d_bias.by_distance = memory.distances.get(size);
    std::fill_n(h.d_bias.by_distance, size, 0.0f);
  }
  if (g.elements) {
    h.d_bias.elements = g.elements + weight_offset + h.head * h.queries * h.keys;
    if (end > begin) fill_zero(h.d_bias.elements + begin, h.keys, h.queries, end - begin);
  }
  if (g.by_query.cols != 0) h.d_bias.by_query = memory.by_query.get(kQueries * bias.distances());
}

/// The sums by distance become those of the slope and of each column.
void finish_distances(const AttentionInputs& in, const Head& h, float* to) {
  double slope = 0;
  for (int64_t x = 0; x < h.queries + kBlock + h.keys; ++x) {
    const int64_t distance = h.bias->origin - x;
    const float sum = h.d_bias.by_distance[x];
    slope -= static_cast<double>(std::abs(distance)) * static_cast<double>(sum);
    if (!in.bias.by_distance.empty()) to[1 + detail::bias_column(in.bias, distance)] += sum;
  }
  to[0] = static_cast<float>(slope);
}

/// A block's part of the gradient of by_query goes to its rows.
HWY_INLINE void finish_by_query(const Head& h, const MatrixView& out, int64_t first, int64_t n, bool add) {
  const int64_t columns = h.bias->distances();
  for (int64_t r = 0; r < n; ++r) {
    float* to = out.row(h.row + first + r) + h.head * columns;
    const float* from = h.d_bias.by_query + r * columns;
    for (int64_t c = 0; c < columns; ++c) to[c] = add ? to[c] + from[c] : from[c];
  }
}
HWY_INLINE void begin_by_query(const Head& h) {
  if (h.d_bias.by_query) std::fill_n(h.d_bias.by_query, kQueries * h.bias->distances(), 0.0f);
}

/// Queries and keys that fit in one block and one chunk: nothing is copied, gradients are written in place.
HWY_INLINE float backward_small(const AttentionInputs& in, const Head& h, Block& block, const Rule& rule,
                                const MatrixView& d_by_query, const Target& d_q, const Target& d_k,
                                const Target& d_v, Memory& memory) {
  prepare_block(in, h, 0, false, rule, block, memory);
  const Chunk chunk{0, h.keys, h.k, h.v};
  Ahead nothing;
  begin_by_query(h);
  const float gate_gradient = meet(in, h, block, chunk, rule, d_q, d_k, d_v, nothing, memory);
  if (h.d_bias.by_query) finish_by_query(h, d_by_query, 0, h.queries, false);
  return gate_gradient;
}

/// Keys [begin, end) of a head against all its queries. d_k and d_v: sums over the heads of a group, of this
/// task alone, side by side; d_q: shared with the tasks of the other keys. turns: one for each block, or
/// null.
HWY_INLINE float backward_range(const AttentionInputs& in, const Head& h, int64_t begin, int64_t end,
                                int64_t range_size, const Rule& rule, const MatrixView& d_by_query,
                                const Target& d_q, const Target& d_k, const Target& d_v,
                                std::atomic<int32_t>* turns, const Ahead& afterwards, Memory& memory) {
  const int64_t k_stride = d_k.stride, v_stride = d_v.stride;
  float* k = memory.k.get((end - begin) * k_stride);
  float* v = memory.v.get((end - begin) * v_stride);
  copy_rows(h.k.from(begin), end - begin, in.d_key, k, k_stride);
  copy_rows(h.v.from(begin), end - begin, in.d_value, v, v_stride);
  float* sums = memory.d_q.get(kQueries * k_stride);
  float gate_gradient = 0;
  Block b;
  for (int64_t i = 0; i < h.queries; i += kQueries) {
    mask_block(in, h, b, i);
    const int64_t n = std::min(kQueries, h.queries - i);
    int64_t first = h.keys, last = 0;  // keys that any query of the block sees
    for (int64_t s = 0; s * kBlock < n; ++s) {
      if (b.mask[s].begin == b.mask[s].end) continue;
      first = std::min(first, b.mask[s].begin);
      last = std::max(last, b.mask[s].end);
    }
    const Target out = d_q.from(i);
    if (first >= last) {
      if (begin == 0) {
        fill_zero(out.data, out.stride, n, in.d_key);
        begin_by_query(h);
        if (h.d_bias.by_query) finish_by_query(h, d_by_query, i, n, false);
      }
      continue;
    }
    if (last <= begin || end <= first) continue;
    const int64_t following = std::min(kQueries, h.queries - i - kQueries);
    Ahead ahead;
    if (following <= 0) ahead = afterwards;
    ahead.add(h.q.from(i + kQueries), following, in.d_key);
    ahead.add(h.d_output.from(i + kQueries), following, in.d_value);
    ahead.add(h.output.from(i + kQueries), following, in.d_value);
    ahead.add({out.data, out.stride}, n, in.d_key);
    ahead.pace((std::min(end, last) - std::max(begin, first)) / kRoom);
    prepare_block(in, h, i, true, rule, b, memory);
    begin_by_query(h);
    bool begun = false;
    for (int64_t j = begin; j < end; j += kKeyChunk) {
      const Chunk chunk{j,
                        std::min(end, j + kKeyChunk),
                        {k + (j - begin) * k_stride, k_stride},
                        {v + (j - begin) * v_stride, v_stride}};
      if (last <= chunk.begin || chunk.end <= first) continue;
      gate_gradient += meet(in, h, b, chunk, rule, {sums, k_stride, begun}, d_k.from(j - begin),
                            d_v.from(j - begin), ahead, memory);
      begun = true;
    }
    const bool earlier = first < begin;  // a task before this one has a part of these gradients
    std::atomic<int32_t>* turn = turns ? turns + i / kQueries : nullptr;
    if (turn) wait_for_turn(*turn, static_cast<int32_t>(begin / range_size - first / range_size));
    for (int64_t r = 0; r < n; ++r) {
      float* to = out.data + r * out.stride;
      const float* part = sums + r * k_stride;
      for (int64_t c = 0; c < in.d_key; ++c) to[c] = earlier ? to[c] + part[c] : part[c];
    }
    if (h.d_bias.by_query) finish_by_query(h, d_by_query, i, n, earlier);
    if (turn) turn->fetch_add(1, std::memory_order_release);
  }
  return gate_gradient;
}

}  // namespace

/// next_task: the one that this thread is likely to do then, or null.
/// turns: one for each block of queries of each head
/// of a sequence whose keys several tasks share.
void backward_task(const AttentionInputs& in, const AttentionGradients& g, const detail::BackwardTask& task,
                   const detail::BackwardTask* next_task, const BackwardParts& parts,
                   std::atomic<int32_t>* turns) {
  thread_local Memory memory;
  thread_local Block block;
  const bool drops = in.dropout.active();
  for (auto s = static_cast<size_t>(task.sequence_begin); s < static_cast<size_t>(task.sequence_end); ++s) {
    Head h;
    h.row = in.query_offsets[s];
    h.queries = in.query_offsets[s + 1] - h.row;
    const int64_t first_key = in.key_offsets[s];
    h.keys = in.key_offsets[s + 1] - first_key;
    h.sequence = s;
    const bool small = 0 < h.queries && h.queries <= kQueries && 0 < h.keys && h.keys <= kKeyChunk;
    const int64_t begin = task.key_begin, end = std::min(task.key_end, h.keys);
    const int64_t blocks = (h.queries + kQueries - 1) / kQueries;
    const int64_t k_stride = copied_stride(in.d_key), v_stride = copied_stride(in.d_value);
    if (small) mask_block(in, h, block, 0);
    for (int head = task.head_begin; head < task.head_end; ++head) {
      const int64_t key_head = int64_t{head} * in.key_heads / in.heads;
      const int64_t value_head = int64_t{head} * in.value_heads / in.heads;
      const int of_key = in.heads / in.key_heads, of_value = in.heads / in.value_heads;
      const int64_t q_column = int64_t{head} * in.d_key, o_column = int64_t{head} * in.d_value;
      const int64_t k_column = key_head * in.d_key, v_column = value_head * in.d_value;
      h.head = head;
      h.gate = in.gate.empty() ? 1.0f : in.gate[static_cast<size_t>(head)];
      h.q = {in.q.row(h.row) + q_column, in.q.stride};
      h.k = {in.k.row(first_key) + k_column, in.k.stride};
      h.v = {in.v.row(first_key) + v_column, in.v.stride};
      h.d_output = {g.d_output.row(h.row) + o_column, g.d_output.stride};
      h.output = {g.output.row(h.row) + o_column, g.output.stride};
      h.lse = g.lse + h.row * in.heads + head;
      const float keep_scale = drops ? in.dropout.keep_scale() : 1.0f;
      const float score_scale = in.bias.none() ? in.scale : 1.0f;
      const Rule rule{score_scale * h.gate,
                      score_scale,
                      h.gate * keep_scale,
                      keep_scale,
                      small || drops || !in.gate.empty() || !in.bias.none() || parts.gates,
                      small};
      HeadBias bias;
      if (!in.bias.none()) {
        begin_bias(in, g.d_bias, begin, end, parts.weight_offsets ? parts.weight_offsets[s] : 0, h, bias,
                   memory);
      }
      const Target d_q{g.d_q.row(h.row) + q_column, g.d_q.stride, false};
      float* const k_gradient = g.d_k.row(first_key + begin) + k_column;
      float* const v_gradient = g.d_v.row(first_key + begin) + v_column;
      float gate_gradient = 0;
      if (small) {
        prefetch_next_small(in, g, task, s, head);
        gate_gradient = backward_small(in, h, block, rule, g.d_bias.by_query, d_q,
                                       {k_gradient, g.d_k.stride, head % of_key != 0},
                                       {v_gradient, g.d_v.stride, head % of_value != 0}, memory);
      } else {
        const int64_t keys = end - begin;
        float* const k_sums = memory.d_k.get(keys * k_stride);
        float* const v_sums = memory.d_v.get(keys * v_stride);
        if (head % of_key == 0) std::fill_n(k_sums, keys * k_stride, 0.0f);
        if (head % of_value == 0) std::fill_n(v_sums, keys * v_stride, 0.0f);
        Ahead ahead;  // what is wanted when this head is done
        ahead.add({k_gradient, g.d_k.stride}, keys, in.d_key);
        ahead.add({v_gradient, g.d_v.stride}, keys, in.d_value);
        add_next_item(in, g, task, s, head, next_task, ahead);
        gate_gradient =
            backward_range(in, h, begin, end, task.key_end - task.key_begin, rule, g.d_bias.by_query, d_q,
                           {k_sums, k_stride, true}, {v_sums, v_stride, true},
                           task.turns < 0 ? nullptr : turns + task.turns + head * blocks, ahead, memory);
        if ((head + 1) % of_key == 0) copy_rows({k_sums, k_stride}, keys, in.d_key, k_gradient, g.d_k.stride);
        if ((head + 1) % of_value == 0)
          copy_rows({v_sums, v_stride}, keys, in.d_value, v_gradient, g.d_v.stride);
      }
      const int64_t part = task.part + static_cast<int64_t>(s) - task.sequence_begin;
      if (parts.gates) parts.gates[part * in.heads + head] = gate_gradient;
      if (h.d_bias.by_distance)
        finish_distances(in, h, parts.distances + (part * in.heads + head) * parts.columns);
    }
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

namespace mh {
HWY_EXPORT(backward_task);

void attention_backward(const AttentionInputs& in, const AttentionGradients& g) {
  detail::check_attention(in, "attention_backward");
  if (!in.key_rows.empty()) {
    throw ShapeError(
        "attention_backward: key_rows is given; gradients exist for keys in their own order only");
  }
  const int64_t output_columns = int64_t{in.heads} * in.d_value;
  detail::check_result("attention_backward", "output", g.output, in.q.rows, output_columns);
  detail::check_result("attention_backward", "d_output", g.d_output, in.q.rows, output_columns);
  detail::check_result("attention_backward", "d_q", g.d_q, in.q.rows, in.q.cols);
  detail::check_result("attention_backward", "d_k", g.d_k, in.k.rows, in.k.cols);
  detail::check_result("attention_backward", "d_v", g.d_v, in.v.rows, in.v.cols);
  const auto expect_bias = [](bool wanted, bool given, const char* name) {
    if (wanted && !given) {
      throw ShapeError(
          fmt::format("attention_backward: d_bias.{} is wanted, but there is no bias.{}", name, name));
    }
  };
  expect_bias(g.d_bias.slopes, !in.bias.slopes.empty(), "slopes");
  expect_bias(g.d_bias.by_distance, !in.bias.by_distance.empty(), "by_distance");
  expect_bias(g.d_bias.elements, !in.bias.elements.empty(), "elements");
  expect_bias(g.d_bias.by_query.cols != 0, in.bias.by_query.cols != 0, "by_query");
  if (g.d_bias.by_query.cols != 0) {
    detail::check_result("attention_backward", "d_bias.by_query", g.d_bias.by_query, in.q.rows,
                         in.bias.by_query.cols);
  }
  if (!g.lse && in.q.rows > 0)
    throw ShapeError("attention_backward: lse is missing; the forward pass writes it");
  const auto heads = static_cast<size_t>(in.heads);
  const detail::BackwardPlan& plan = detail::backward_plan(in);
  thread_local std::vector<float> gates;
  thread_local std::vector<std::atomic<int32_t>> waiting;
  if (g.d_gate) gates.assign(static_cast<size_t>(plan.parts) * heads, 0.0f);
  if (waiting.size() < static_cast<size_t>(plan.turns)) {
    waiting = std::vector<std::atomic<int32_t>>(static_cast<size_t>(plan.turns));
  }
  for (int64_t i = 0; i < plan.turns; ++i)
    waiting[static_cast<size_t>(i)].store(0, std::memory_order_relaxed);
  const AttentionBiasGradients& d_bias = g.d_bias;
  const auto columns = static_cast<size_t>(1 + (in.bias.by_distance.empty() ? 0 : in.bias.distance_columns));
  thread_local std::vector<float> distances;
  const bool by_distance = d_bias.slopes || d_bias.by_distance;
  if (by_distance) distances.assign(static_cast<size_t>(plan.parts) * heads * columns, 0.0f);
  // Taken here: each of these is another one in another thread.
  const BackwardParts parts{g.d_gate ? gates.data() : nullptr, by_distance ? distances.data() : nullptr,
                            static_cast<int64_t>(columns),
                            in.bias.elements.empty() ? nullptr : detail::attention_weight_offsets(in)};
  std::atomic<int32_t>* const turns = waiting.data();
  const auto count = static_cast<int64_t>(plan.tasks.size()), threads = int64_t{thread_count()};
  parallel_for(count, [&](int64_t task) {
    const auto* this_task = plan.tasks.data() + task;
    const auto* next_task = task + threads < count ? this_task + threads : nullptr;
    HWY_DYNAMIC_DISPATCH(backward_task)(in, g, *this_task, next_task, parts, turns);
  });
  const auto sum_of_parts = [&](const float* all, size_t stride) {
    double sum = 0;
    for (size_t part = 0; part < static_cast<size_t>(plan.parts); ++part) {
      sum += static_cast<double>(all[part * stride]);
    }
    return static_cast<float>(sum);
  };
  for (size_t h = 0; h < heads && g.d_gate; ++h) g.d_gate[h] = sum_of_parts(parts.gates + h, heads);
  for (size_t h = 0; h < heads && by_distance; ++h) {
    const float* of_head = parts.distances + h * columns;
    if (d_bias.slopes) d_bias.slopes[h] = sum_of_parts(of_head, heads * columns);
    for (size_t c = 1; c < columns && d_bias.by_distance; ++c) {
      d_bias.by_distance[h * (columns - 1) + c - 1] = sum_of_parts(of_head + c, heads * columns);
    }
  }
}

}  // namespace mh
#endif

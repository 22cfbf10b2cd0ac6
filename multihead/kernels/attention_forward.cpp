#include <algorithm>
#include <cstddef>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention.h"
#include "multihead/kernels/attention_decode.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/attention_forward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/attention_bias-inl.h"
#include "multihead/kernels/attention_few-inl.h"
#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/attention_mask-inl.h"
#include "multihead/kernels/attention_tiles-inl.h"

// The softmax is taken online (Milakov and Gimelshein 2018): chunk by chunk of the keys, relative to a
// running maximum. That maximum lags behind: it moves only when a score exceeds it by more than kLag, so that
// sums are rarely scaled again; weights may be up to 2^kLag meanwhile, which costs no precision.
HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

constexpr int64_t kChunk = 256;  // keys met at once; chunks begin at multiples of it
constexpr int kTaskStrips = 32;  // strips of queries that share the copy of a chunk
constexpr float kLag = 8;        // in powers of two
constexpr int64_t kStripSize = kBlock * (kChunk + kRoom);
constexpr int64_t kSmall = 64;  // keys of a small item
constexpr int kFewRest = 4;     // that many queries behind the last full strip make no strip of their own

struct Memory {
  detail::Scratch<float> queries, strips, sums, keys, values;
  detail::Scratch<uint16_t> allow, ready, keep;
  BiasMemory bias;
};

/// 16 queries of a sequence.
struct Strip {
  BlockMask mask;
  int n;                            // queries there are
  int64_t row, first;               // of the first query among all, and in its sequence
  const uint16_t* allow = nullptr;  // [mask.end - mask.begin], set where `mask` cuts; made once for all heads
};

/// What one task does of a sequence at once: up to kTaskStrips strips.
struct Piece {
  Strip strip[kTaskStrips];
  int strips = 0;
  int64_t begin = 0, end = 0;   // keys that any query sees
  int64_t first = 0, last = 0;  // queries of the sequence
  int64_t queries, keys;        // of the sequence
  size_t sequence;

  /// Whether a strip meets all its keys in one chunk.
  static bool single(const Strip& s) { return s.mask.begin / kChunk == (s.mask.end - 1) / kChunk; }
};

/// The running softmax of each strip's queries.
struct Running {
  HWY_ALIGN float most[kTaskStrips][kBlock];
  HWY_ALIGN float total[kTaskStrips][kBlock];
};

/// -infinity where a query may not see a key of [begin, end); the maxima of what is left.
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

/// strip = 2^(strip - most), summed.
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

/// 0 where dropout drops.
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

/// The product P V where V holds NaN or infinity in rows that some queries may not see: 0 times those would
/// leak.
HWY_NOINLINE inline void product_of_allowed(const Product& p, const Mask& mask, const Strip& s,
                                            const Piece& piece, int64_t begin, int64_t columns) {
  for (int64_t r = 0; r < s.n; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (int64_t n = 0; n < p.sums; ++n) {
        if (mask.allows(s.row + r, s.first + r, begin + n, piece.queries, piece.keys)) {
          sum += p.a[n * kBlock + r] * p.b.row(n)[c];
        }
      }
      float& out = p.out[r * p.out_stride + c];
      out = p.add ? out + sum : (p.factors ? p.factors[r] : 1.0f) * sum;
    }
  }
}

/// factors = scale / total, 0 for a query that sees nothing.
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
  Rows q, k, v;        // first: the piece's first query, the sequence's first key
  Rows output;         // of the piece's first query
  float output_scale;  // the gate, and what makes up for dropout
  const HeadBias* bias = nullptr;
  float* queries;  // [strips][d_key][16]
  float* sums;     // [strips * 16, sums_stride]: the output while it is not complete
  int64_t sums_stride;
};

/// Keys of a chunk as they are met.
struct Chunk {
  int64_t begin, end;
  Rows k, v;        // first: key `begin`; without an index
  int finite = -1;  // whether v is: not known
};

/// Scores of strips [first, first + strips) against the keys they see of a chunk. from, to: those keys.
HWY_NOINLINE inline void score_block(const AttentionInputs& in, const HeadOfPiece& h, const Chunk& chunk,
                                     int first, int strips, const int64_t* from, const int64_t* to,
                                     float* scores, float* top, Ahead& ahead) {
  const int64_t size = int64_t{kBlock} * in.d_key;
  for_each_part(from, to, strips, chunk.begin, chunk.end,
                [&](int64_t j, int64_t n, int a, int count) HWY_ATTR {
                  if (count == 0) return;
                  score_strips(count, chunk.k.from(j), n, h.queries + (first + a) * size, in.d_key,
                               scores + a * kStripSize + j * kBlock, kStripSize, top + a * kBlock, ahead);
                });
}

/// One chunk of keys meets strips [first, first + strips), strips <= kGroups.
HWY_NOINLINE inline void meet(const AttentionInputs& in, const AttentionOutputs& out, const Piece& piece,
                              const HeadOfPiece& h, Chunk& chunk, int first, int strips, Running& running,
                              Ahead& ahead, Memory& memory) {
  int64_t from[kGroups], to[kGroups];
  HWY_ALIGN float top[kGroups * kBlock];
  bool some = false;
  for (int g = 0; g < strips; ++g) {
    const BlockMask& mask = piece.strip[first + g].mask;
    from[g] = std::max(chunk.begin, mask.begin);
    to[g] = std::max(from[g], std::min(chunk.end, mask.end));
    some = some || from[g] < to[g];
    std::fill_n(top + g * kBlock, kBlock, kMinusInfinity);
  }
  if (!some) return;
  float* scores = memory.strips.get(kGroups * kStripSize);
  score_block(in, h, chunk, first, strips, from, to, scores, top, ahead);
  for (int g = 0; g < strips; ++g) {
    const int64_t n = to[g] - from[g];
    if (n == 0) continue;
    const Strip& s = piece.strip[first + g];
    float* strip = scores + g * kStripSize + (from[g] - chunk.begin) * kBlock;
    float* most = running.most[first + g];
    float* total = running.total[first + g];
    float* sums = h.sums + (first + g) * kBlock * h.sums_stride;
    const bool cut = s.mask.cuts(from[g], to[g]);
    if (h.bias) add_bias(*h.bias, s.first, s.n, from[g], to[g], strip);
    const uint16_t* allow = s.allow ? s.allow + (from[g] - s.mask.begin) : nullptr;
    if (cut && !allow) {
      uint16_t* bits = memory.allow.get(kChunk);
      for_cut_keys(s.mask, from[g], to[g], [&](int64_t begin, int64_t end) HWY_ATTR {
        allow_bits(in.mask, s.mask, s.row, s.n, begin, end, bits + (begin - from[g]));
      });
      allow = bits;
    }
    if (cut || h.bias) mask_strip(s, from[g], to[g], allow, strip, top + g * kBlock);
    const bool begun = s.mask.begin < chunk.begin;
    if (begun) {
      move_maximum(top + g * kBlock, most, total, s.n, sums, h.sums_stride, in.d_value);
    } else {
      std::copy_n(top + g * kBlock, kBlock, most);
    }
    exponentiate(strip, n, most, total);
    if (in.dropout.active()) {
      uint16_t* keep = memory.keep.get(kChunk + 16);
      keep_bits(in.dropout, in.dropout.sentences[piece.sequence], h.head, s.first, from[g], to[g], keep);
      drop(strip, n, keep);
    }
    HWY_ALIGN float factors[kBlock];
    Product values{strip, 0, chunk.v.from(from[g] - chunk.begin), n, sums, h.sums_stride, begun};
    if (Piece::single(s)) {
      output_factors(total, h.output_scale, factors);
      values.factors = factors;
      values.out = out.output.row(s.row) + int64_t{h.head} * in.d_value;
      values.out_stride = out.output.stride;
    }
    if (cut && chunk.finite < 0) chunk.finite = all_finite(chunk.v, chunk.end - chunk.begin, in.d_value);
    if (cut && !chunk.finite) {
      product_of_allowed(values, in.mask, s, piece, from[g], in.d_value);
    } else {
      product<OverKeys>(values, s.n, in.d_value);
    }
  }
}

/// What is left to do when all keys are met: the output of strips of several chunks or none, and lse.
HWY_INLINE void finish_strip(const AttentionInputs& in, const AttentionOutputs& out, const Strip& s,
                             const HeadOfPiece& h, const float* most, const float* total, const float* sums) {
  const DF d;
  HWY_ALIGN float factors[kBlock];
  if (s.mask.begin == s.mask.end || !Piece::single(s)) {
    output_factors(total, h.output_scale, factors);
    const bool none = s.mask.begin == s.mask.end;
    for (int i = 0; i < s.n; ++i) {
      float* o = out.output.row(s.row + i) + int64_t{h.head} * in.d_value;
      for (int64_t c = 0; c < in.d_value; ++c) o[c] = none ? 0 : sums[i * h.sums_stride + c] * factors[i];
    }
  }
  if (!out.lse) return;
  for (int w = 0; w < kVectors; ++w) {
    const auto m = hn::Load(d, most + w * kLanes);
    const auto safe = hn::IfThenZeroElse(hn::Eq(m, hn::Set(d, kMinusInfinity)), m);
    const auto lse = hn::Add(safe, log2_vector(hn::Load(d, total + w * kLanes)));
    hn::Store(hn::Mul(lse, hn::Set(d, kLn2)), d, factors + w * kLanes);
  }
  for (int i = 0; i < s.n; ++i) out.lse[(s.row + i) * in.heads + h.head] = factors[i];
}

/// The first rows of what comes after a head of a piece: as much as can be asked for early.
struct NextItem {
  Rows q, k, v;
  int64_t queries = 0, keys = 0;
};
HWY_INLINE NextItem next_item(const AttentionInputs& in, const detail::AttentionTask& task, size_t s,
                              int head, const detail::AttentionTask* next_task) {
  NextItem next;
  int64_t first = task.query_begin;
  if (++head == task.head_end) {
    head = task.head_begin;
    if (++s == static_cast<size_t>(task.sequence_end)) {
      if (!next_task) return next;
      s = static_cast<size_t>(next_task->sequence_begin);
      head = next_task->head_begin;
      first = next_task->query_begin;
    }
  }
  const int64_t row = in.query_offsets[s], key = in.key_offsets[s];
  const int32_t* index = in.key_rows.empty() ? nullptr : in.key_rows.data() + key;
  const int64_t first_row = index ? 0 : key;
  next.queries = std::min<int64_t>(in.query_offsets[s + 1] - row - first, kTaskStrips * kBlock);
  next.keys = std::min<int64_t>(in.key_offsets[s + 1] - key, kChunk);
  next.q = {in.q.row(row + first) + int64_t{head} * in.d_key, in.q.stride};
  next.k = {in.k.row(first_row) + int64_t{head} * in.key_heads / in.heads * in.d_key, in.k.stride, index};
  next.v = {in.v.row(first_row) + int64_t{head} * in.value_heads / in.heads * in.d_value, in.v.stride, index};
  return next;
}

/// One head of a piece, chunk by chunk of its keys.
HWY_INLINE void forward_head(const AttentionInputs& in, const AttentionOutputs& out, const Piece& piece,
                             HeadOfPiece& h, const NextItem& next, Memory& memory) {
  Running running;
  h.queries = memory.queries.get(int64_t{piece.strips} * kBlock * in.d_key);
  for (int s = 0; s < piece.strips; ++s) {
    transpose_block(h.q.from(int64_t{s} * kBlock), piece.strip[s].n, in.d_key, in.scale * kLog2e,
                    h.queries + int64_t{s} * kBlock * in.d_key);
    std::fill_n(running.most[s], kBlock, kMinusInfinity);
    std::fill_n(running.total[s], kBlock, 0.0f);
  }
  h.sums_stride = (in.d_value + kLanes - 1) / kLanes * kLanes;
  h.sums = memory.sums.get(kTaskStrips * kBlock * h.sums_stride);
  // Rows lie far apart; a copy of them that several blocks of queries read pays off.
  const bool copied = h.k.index != nullptr || piece.strips > kGroups;
  const int64_t k_stride = copied_stride(in.d_key), v_stride = copied_stride(in.d_value);
  for (int64_t j = piece.begin / kChunk * kChunk; j < piece.end; j += kChunk) {
    Chunk chunk{std::max(j, piece.begin), std::min(j + kChunk, piece.end), {}, {}};
    chunk.k = h.k.from(chunk.begin);
    chunk.v = h.v.from(chunk.begin);
    if (copied) {
      float* keys = memory.keys.get(kChunk * k_stride);
      float* values = memory.values.get(kChunk * v_stride);
      copy_rows(chunk.k, chunk.end - chunk.begin, in.d_key, keys, k_stride);
      copy_rows(chunk.v, chunk.end - chunk.begin, in.d_value, values, v_stride);
      chunk.k = {keys, k_stride};
      chunk.v = {values, v_stride};
    }
    Ahead ahead;
    const int64_t after = std::min(kChunk, piece.end - chunk.end);
    if (piece.strips <= kGroups && piece.end <= kSmall) {
      // Several small items fit in the second-level cache; asking costs more than it gains.
    } else if (after > 0) {
      ahead.add(h.k.from(chunk.end), after, in.d_key);
      ahead.add(h.v.from(chunk.end), after, in.d_value);
    } else {
      ahead.add(h.output, piece.last - piece.first, in.d_value);
      ahead.add(next.k, next.keys, in.d_key);
      ahead.add(next.v, next.keys, in.d_value);
      ahead.add(next.q, next.queries, in.d_key);
    }
    const int64_t blocks = (piece.strips + kGroups - 1) / kGroups;
    ahead.pace(blocks * ((chunk.end - chunk.begin) / kRoom));
    for (int s = 0; s < piece.strips; s += kGroups) {
      meet(in, out, piece, h, chunk, s, std::min(kGroups, piece.strips - s), running, ahead, memory);
    }
  }
  for (int s = 0; s < piece.strips; ++s) {
    finish_strip(in, out, piece.strip[s], h, running.most[s], running.total[s],
                 h.sums + int64_t{s} * kBlock * h.sums_stride);
  }
}

/// The weights of a strip, from scores computed again: who wants weights does not change the output.
void weights_of_strip(const AttentionInputs& in, const HeadOfPiece& h, const Strip& s, Rows q, int64_t keys,
                      float* weights, Memory& memory) {
  for (int i = 0; i < s.n; ++i) std::fill_n(weights + i * keys, keys, 0.0f);
  HWY_ALIGN float top[kBlock];
  HWY_ALIGN float total[kBlock] = {};
  HWY_ALIGN float factors[kBlock];
  std::fill_n(top, kBlock, kMinusInfinity);
  const int64_t begin = s.mask.begin, n = s.mask.end - begin;
  if (n == 0) return;
  float* block = memory.queries.get(int64_t{kBlock} * in.d_key);
  float* strip = memory.strips.get(std::max(kGroups * kStripSize, kBlock * (n + kRoom)));
  transpose_block(q, s.n, in.d_key, in.scale * kLog2e, block);
  Rows k = h.k.from(begin);
  if (k.index) {
    float* copy = memory.keys.get(std::max(n, kChunk) * in.d_key);
    copy_rows(k, n, in.d_key, copy, in.d_key);
    k = {copy, in.d_key};
  }
  Ahead nothing;
  score_strips(1, k, n, block, in.d_key, strip, 0, top, nothing);
  if (h.bias) add_bias(*h.bias, s.first, s.n, begin, s.mask.end, strip);
  const bool cut = s.mask.cuts(begin, s.mask.end);
  uint16_t* allow = memory.allow.get(std::max(n, kChunk));
  if (cut) allow_bits(in.mask, s.mask, s.row, s.n, begin, s.mask.end, allow);
  if (cut || h.bias) mask_strip(s, begin, s.mask.end, allow, strip, top);
  exponentiate(strip, n, top, total);
  output_factors(total, 1.0f, factors);
  for (int64_t j = 0; j < n; ++j) {
    for (int i = 0; i < s.n; ++i) weights[i * keys + begin + j] = strip[j * kBlock + i] * factors[i];
  }
}

/// The statistics of a strip, from scores computed again chunk by chunk.
void statistics_of_strip(const AttentionInputs& in, const AttentionOutputs& out, const HeadOfPiece& h,
                         const Strip& s, int64_t piece_first, int64_t queries, int64_t keys, Memory& memory) {
  const DF d;
  const AttentionStatistics& wanted = out.statistics;
  HWY_ALIGN float lse[kBlock] = {};
  HWY_ALIGN float highest[kBlock];
  std::fill_n(highest, kBlock, kMinusInfinity);
  double entropy[kBlock] = {}, position[kBlock] = {}, distance[kBlock] = {};
  const size_t distances = wanted.distances.size();
  const auto place = [&](int i) { return static_cast<size_t>((s.row + i) * in.heads + h.head); };
  for (int i = 0; i < s.n; ++i) {
    lse[i] = out.lse[place(i)] == kMinusInfinity ? 0 : out.lse[place(i)] * kLog2e;
    if (wanted.mass) std::fill_n(wanted.mass + place(i) * distances, distances, 0.0f);
  }
  float* block = memory.queries.get(int64_t{kBlock} * in.d_key);
  float* strip = memory.strips.get(kGroups * kStripSize);
  float* copy = h.k.index ? memory.keys.get(kChunk * copied_stride(in.d_key)) : nullptr;
  transpose_block(h.q.from(s.first - piece_first), s.n, in.d_key, in.scale * kLog2e, block);
  for (int64_t begin = s.mask.begin; begin < s.mask.end; begin += kChunk) {
    const int64_t end = std::min(s.mask.end, begin + kChunk);
    Rows k = h.k.from(begin);
    if (copy) {
      copy_rows(k, end - begin, in.d_key, copy, in.d_key);
      k = {copy, in.d_key};
    }
    HWY_ALIGN float top[kBlock];
    std::fill_n(top, kBlock, kMinusInfinity);
    Ahead nothing;
    score_strips(1, k, end - begin, block, in.d_key, strip, 0, top, nothing);
    if (h.bias) add_bias(*h.bias, s.first, s.n, begin, end, strip);
    uint16_t* allow = memory.allow.get(kChunk);
    if (s.mask.cuts(begin, end)) allow_bits(in.mask, s.mask, s.row, s.n, begin, end, allow);
    mask_strip(s, begin, end, allow, strip, top);
    for (int i = 0; i < s.n; ++i) highest[i] = std::max(highest[i], top[i]);
    // Sums of a chunk in float, over the chunks in double.
    for (int w = 0; w < kVectors; ++w) {
      const auto base = hn::Load(d, lse + w * kLanes);
      auto information = hn::Zero(d), first = hn::Zero(d), total = hn::Zero(d), away = hn::Zero(d);
      HWY_ALIGN float own[kLanes];
      for (int i = 0; i < kLanes; ++i)
        own[i] = static_cast<float>(s.first + w * kLanes + i + keys - queries - begin);
      for (int64_t j = 0; j < end - begin; ++j) {
        float* at = strip + j * kBlock + w * kLanes;
        const auto surprise = hn::Sub(base, hn::Load(d, at));  // -log2 p
        const auto p = exp2_vector(hn::Neg(surprise));
        const auto key = hn::Set(d, static_cast<float>(j));
        information = hn::Add(information, hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), hn::Mul(p, surprise)));
        first = hn::MulAdd(p, key, first);
        total = hn::Add(total, p);
        away = hn::MulAdd(p, hn::Abs(hn::Sub(key, hn::Load(d, own))), away);
        hn::Store(p, d, at);
      }
      HWY_ALIGN float parts[4][kLanes];
      hn::Store(information, d, parts[0]);
      hn::Store(first, d, parts[1]);
      hn::Store(total, d, parts[2]);
      hn::Store(away, d, parts[3]);
      for (int i = 0; i < kLanes; ++i) {
        entropy[w * kLanes + i] += static_cast<double>(parts[0][i]);
        position[w * kLanes + i] +=
            static_cast<double>(parts[1][i]) + static_cast<double>(begin) * static_cast<double>(parts[2][i]);
        distance[w * kLanes + i] += static_cast<double>(parts[3][i]);
      }
    }
    for (int i = 0; i < s.n && wanted.mass; ++i) {
      for (size_t m = 0; m < distances; ++m) {
        const int64_t j = s.first + i + keys - queries + wanted.distances[m];
        if (begin <= j && j < end) wanted.mass[place(i) * distances + m] = strip[(j - begin) * kBlock + i];
      }
    }
  }
  for (int i = 0; i < s.n; ++i) {
    if (wanted.highest) wanted.highest[place(i)] = highest[i] * kLn2;
    if (wanted.entropy) wanted.entropy[place(i)] = kLn2 * static_cast<float>(entropy[i]);
    if (wanted.expected_position) wanted.expected_position[place(i)] = static_cast<float>(position[i]);
    if (wanted.expected_distance) wanted.expected_distance[place(i)] = static_cast<float>(distance[i]);
  }
}

}  // namespace

/// next_task: the one that this thread is likely to do then, or null.
void forward_task(const AttentionInputs& in, const AttentionOutputs& out, const detail::AttentionTask& task,
                  const detail::AttentionTask* next_task, const int64_t* weight_offsets) {
  thread_local Memory memory;
  thread_local FewMemory few_memory;
  thread_local Piece piece;
  for (auto s = static_cast<size_t>(task.sequence_begin); s < static_cast<size_t>(task.sequence_end); ++s) {
    const int64_t row = in.query_offsets[s], queries = in.query_offsets[s + 1] - row;
    const int64_t key = in.key_offsets[s], keys = in.key_offsets[s + 1] - key;
    const int32_t* index = in.key_rows.empty() ? nullptr : in.key_rows.data() + key;
    const int64_t first_row = index ? 0 : key;
    const int64_t end = std::min(queries, task.query_end);
    const bool decoded = detail::attention_decodes(in, static_cast<int64_t>(s));  // only weights are left
    piece.queries = queries;
    piece.keys = keys;
    piece.sequence = s;
    HeadOfPiece h;
    HeadBias bias;
    const auto choose_head = [&](int head, int64_t first) {
      h.head = head;
      h.q = {in.q.row(row + first) + int64_t{head} * in.d_key, in.q.stride};
      h.k = {in.k.row(first_row) + int64_t{head} * in.key_heads / in.heads * in.d_key, in.k.stride, index};
      h.v = {in.v.row(first_row) + int64_t{head} * in.value_heads / in.heads * in.d_value, in.v.stride,
             index};
      h.output = {out.output.row(row + first) + int64_t{head} * in.d_value, out.output.stride};
      h.output_scale = (in.gate.empty() ? 1.0f : in.gate[static_cast<size_t>(head)]) *
                       (in.dropout.active() ? in.dropout.keep_scale() : 1.0f);
      if (in.bias.none()) return;
      bias = head_bias(in, row, head, first, end, queries, keys, weight_offsets ? weight_offsets[s] : 0,
                       memory.bias);
      h.bias = &bias;
    };
    for (int64_t i = task.query_begin; i < end;) {
      piece.strips = 0;
      piece.begin = keys;
      piece.end = 0;
      const int64_t first = piece.first = i;
      int few = 0;
      for (; i < end && piece.strips < kTaskStrips && few == 0; i += kBlock) {
        Strip& strip = piece.strip[piece.strips];
        strip.n = static_cast<int>(std::min<int64_t>(kBlock, end - i));
        strip.row = row + i;
        strip.first = i;
        strip.allow = nullptr;
        block_range(in.mask, i, strip.n, queries, keys, strip.mask);
        const bool last = strip.n <= (i == 0 ? kFewQueries : kFewRest);
        if (last && keys <= kFewKeys && !in.dropout.active() && in.bias.none()) {
          few = strip.n;
        } else {
          ++piece.strips;
          if (strip.mask.begin < strip.mask.end) {
            piece.begin = std::min(piece.begin, strip.mask.begin);
            piece.end = std::max(piece.end, strip.mask.end);
          }
        }
      }
      piece.last = std::min(i, end);
      // Masks are the same for all heads; where each strip has one chunk, so are their bits.
      if (task.head_end - task.head_begin > 1 && in.mask.kind() != Mask::Kind::kNone) {
        uint16_t* bits = memory.ready.get(kTaskStrips * kChunk);
        for (int g = 0; g < piece.strips; ++g) {
          Strip& strip = piece.strip[g];
          const BlockMask& mask = strip.mask;
          if (!Piece::single(strip) || !mask.cuts(mask.begin, mask.end)) continue;
          uint16_t* at = bits + g * kChunk;
          for_cut_keys(mask, mask.begin, mask.end, [&](int64_t from, int64_t to) HWY_ATTR {
            allow_bits(in.mask, mask, strip.row, strip.n, from, to, at + (from - mask.begin));
          });
          strip.allow = at;
        }
      }
      for (int head = task.head_begin; head < task.head_end && !decoded; ++head) {
        choose_head(head, first);
        if (few > 0) {
          const Strip& strip = piece.strip[piece.strips];
          const NextItem next = next_item(in, task, s, head, nullptr);
          prefetch_rows(next.q, std::min<int64_t>(next.queries, kBlock), in.d_key);
          if (next.keys <= 64) {
            prefetch_rows(next.k, next.keys, in.d_key);
            prefetch_rows(next.v, next.keys, in.d_value);
          }
          const FewQueries f{
              h.q.from(strip.first - first), h.k, h.v, few, strip.row, strip.first, queries, keys, head};
          forward_few(in, out, f, strip.mask, few_memory);
        }
        if (piece.strips > 0) {
          forward_head(in, out, piece, h, next_item(in, task, s, head, next_task), memory);
        }
      }
      if (!out.weights && !out.statistics.wanted()) continue;
      for (int head = task.head_begin; head < task.head_end; ++head) {
        choose_head(head, first);
        for (int g = 0; g < piece.strips + (few > 0); ++g) {
          const Strip& strip = piece.strip[g];
          if (out.statistics.wanted()) statistics_of_strip(in, out, h, strip, first, queries, keys, memory);
          if (!out.weights) continue;
          float* weights = out.weights + weight_offsets[s] + (head * queries + strip.first) * keys;
          weights_of_strip(in, h, strip, h.q.from(strip.first - first), keys, weights, memory);
        }
      }
    }
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mh {
HWY_EXPORT(forward_task);

void attention_forward(const AttentionInputs& in, const AttentionOutputs& out) {
  detail::check_attention(in, "attention_forward");
  detail::check_result("attention_forward", "output", out.output, in.q.rows, int64_t{in.heads} * in.d_value);
  if (out.statistics.wanted() && !out.lse && in.q.rows > 0) {
    throw ShapeError("attention_forward: statistics need lse; give memory for it");
  }
  const bool by_elements = out.weights || !in.bias.elements.empty();
  const int64_t* weight_offsets = by_elements ? detail::attention_weight_offsets(in) : nullptr;
  detail::attention_decode(in, out);
  const auto& tasks = detail::attention_tasks(in, out.weights || out.statistics.wanted());
  const auto count = static_cast<int64_t>(tasks.size()), threads = int64_t{thread_count()};
  parallel_for(count, [&](int64_t task) {
    const auto* this_task = tasks.data() + task;
    const auto* next_task = task + threads < count ? this_task + threads : nullptr;
    HWY_DYNAMIC_DISPATCH(forward_task)(in, out, *this_task, next_task, weight_offsets);
  });
}

}  // namespace mh
#endif

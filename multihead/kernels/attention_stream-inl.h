// Part of the attention kernel: decoding, whose time is spent reading K and V once.
//
// Memory is read in order: a tile is four whole rows of K (then of V), and every head uses them while they
// are in the first-level cache.
#if defined(MULTIHEAD_KERNELS_ATTENTION_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_STREAM_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_STREAM_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_STREAM_INL_H_
#endif

#include <algorithm>
#include <numeric>

#include "multihead/base/aligned.h"
#include "multihead/kernels/attention_cap-inl.h"
#include "multihead/kernels/attention_stream_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

constexpr int64_t kStreamScores = 1 << 16;  // scores of all heads that are computed together
constexpr int64_t kStreamAhead = 1 << 13;   // bytes that are prefetched ahead

struct StreamMemory {
  AlignedBuffer<float> queries, scores, results, tile;
  AlignedBuffer<int64_t> columns;
};

/// Computes heads [f.head_begin, f.head_end) together. next: the keys to prefetch for what follows, or
/// null.
template <class T>
HWY_NOINLINE void stream_heads(const AttentionInputs& in, const StreamedQueries& f, const BlockMask& mask,
                               int64_t weight_offset, const StreamedRows<T>* next,
                               const StreamedResults& results, StreamMemory& memory) {
  const DF d;
  const size_t s = f.sequence;
  const int64_t row = in.query_offsets[s], key = in.key_offsets[s], rows = f.rows();
  const int64_t row_tiles = (rows + kTileRows - 1) / kTileRows, padded = row_tiles * kTileRows;
  const int64_t stride = (int64_t{in.d_key} + kLanes - 1) / kLanes * kLanes;
  const int64_t of_key = f.n * (in.heads / in.key_heads), of_value = f.n * (in.heads / in.value_heads);
  float* const queries = memory.queries.get(padded * stride);
  int64_t* const k_columns = memory.columns.get(2 * padded);
  int64_t* const v_columns = k_columns + padded;
  const auto factor = hn::Set(d, product_factor(in));
  for (int64_t r = 0; r < padded; ++r) {
    const int64_t real = std::min(r, rows - 1);  // missing rows are copies of the last one
    k_columns[r] = f.group_of(real, of_key) * in.d_key;
    v_columns[r] = f.group_of(real, of_value) * in.d_value;
    const float* const q = in.q.sequence(s, row) + (f.first + real % f.n) * in.q.stride +
                           (f.head_begin + real / f.n) * in.q.step(in.d_key);
    for (int c = 0; c < in.d_key; c += kLanes) {
      const auto part = load_first(q + c, std::min(kLanes, in.d_key - c));
      hn::Store(hn::Mul(part, factor), d, queries + r * stride + c);
    }
  }
  const int32_t* const index = in.key_rows.empty() ? nullptr : in.key_rows.data() + key;
  const int64_t count = f.end - f.begin, tiles = (count + kQuad - 1) / kQuad, first_row = index ? 0 : key;
  const int64_t k_first = f.head_begin * f.n / of_key * in.d_key;
  const int64_t v_first = f.head_begin * f.n / of_value * in.d_value;
  const auto all_k = detail::keys_of<T>(in), all_v = detail::values_of<T>(in);
  const StreamedRows<T> k{
      StoredRows<T>{all_k.sequence(s, first_row) + k_first, all_k.stride, index}.from(f.begin), count,
      k_columns[rows - 1] + in.d_key};
  const StreamedRows<T> v{
      StoredRows<T>{all_v.sequence(s, first_row) + v_first, all_v.stride, index}.from(f.begin), count,
      v_columns[rows - 1] + in.d_value};
  const StreamedScores scores{memory.scores.get(row_tiles * tiles * kLanes), tiles};
  const bool k_shared = f.shared(of_key, kTileRows), v_shared = f.shared(of_value, kTileRows);
  const auto tiles_ahead = [](const StreamedRows<T>& x) {
    return std::max<int64_t>(1, kStreamAhead / (kQuad * x.width * static_cast<int64_t>(sizeof(T))));
  };
  float* room = k.room(memory.tile);
  for (int64_t t = 0; t < tiles; ++t) {
    const float* tile[kQuad];
    k.tile(t, room, tile);
    for (int64_t r = 0; r < row_tiles; ++r) {
      k.ask(t + tiles_ahead(k), r, row_tiles, &v);
      const float* const q = queries + r * kTileRows * stride;
      const int64_t* const columns = k_columns + r * kTileRows;
      const VF score = k_shared ? score_tile<true>(q, stride, tile, columns, in.d_key)
                                : score_tile<false>(q, stride, tile, columns, in.d_key);
      hn::Store(score, d, scores.tile(r, t));
    }
  }
  if (in.soft_cap) cap_numbers(scores.data, row_tiles * tiles * kLanes, cap_of(in));
  for (int64_t j = count; j < tiles * kQuad; ++j) {
    for (int64_t r = 0; r < rows; ++r) scores.at(r, j) = kMinusInfinity;
  }
  const bool cut = mask.cuts(f.begin, f.end);
  if (cut || !in.bias.none()) stream_bias(in, f, mask, weight_offset, scores);
  stream_softmax(scores, rows, results);
  std::fill_n(results.sums, rows * results.sums_stride, 0.0f);
  if (cut && !all_finite(v.rows, count, static_cast<int>(v.width))) {
    return stream_allowed_values(in, f, scores, v, of_value, results);
  }
  room = v.room(memory.tile);
  for (int64_t t = 0; t < tiles; ++t) {
    const float* tile[kQuad];
    v.tile(t, room, tile);
    for (int64_t r = 0; r < row_tiles; ++r) {
      v.ask(t + tiles_ahead(v), r, row_tiles, next);
      value_tile(v_shared, scores.tile(r, t), tile, v_columns + r * kTileRows, in.d_value,
                 std::min<int64_t>(kTileRows, rows - r * kTileRows),
                 results.sums + r * kTileRows * results.sums_stride, results.sums_stride);
    }
  }
}

/// The softmax over the keys of f that `mask` allows, for every row of f. weight_offset: for bias.elements.
/// REQUIRES: 1 <= f.n <= 6, no dropout; results.sums_stride is a multiple of 16 and the sums are aligned.
template <class T>
HWY_INLINE void stream_queries(const AttentionInputs& in, StreamedQueries f, const BlockMask& mask,
                               int64_t weight_offset, const StreamedRows<T>* next,
                               const StreamedResults& results, StreamMemory& memory) {
  f.begin = std::max(f.begin, mask.begin);
  f.end = std::min(f.end, mask.end);
  if (f.begin >= f.end) {
    std::fill_n(results.most, f.rows(), kMinusInfinity);
    std::fill_n(results.total, f.rows(), 0.0f);
    std::fill_n(results.sums, f.rows() * results.sums_stride, 0.0f);
    return;
  }
  // Heads that share keys or values stay together.
  const int group = in.heads / std::gcd(in.key_heads, in.value_heads);
  const int64_t of_group = group * f.n * (f.end - f.begin);
  const auto step = static_cast<int>(std::max<int64_t>(1, kStreamScores / of_group)) * group;
  for (int head = f.head_begin; head < f.head_end; head += step) {
    StreamedQueries some = f;
    some.head_begin = head;
    some.head_end = std::min(f.head_end, head + step);
    stream_heads(in, some, mask, weight_offset, next, results.from(f.n * (head - f.head_begin)), memory);
  }
}

/// All keys of a sequence at once: writes output and lse.
template <class T>
HWY_NOINLINE void forward_streamed(const AttentionInputs& in, const AttentionOutputs& out,
                                   const StreamedQueries& f, const BlockMask& mask, int64_t weight_offset,
                                   const StreamedRows<T>* next, StreamMemory& memory) {
  const DF d;
  const int64_t rows = f.rows(), padded = (rows + 15) / 16 * 16;
  const int64_t stride = (int64_t{in.d_value} + 15) / 16 * 16;
  float* const sums = memory.results.get(padded * (stride + 2));
  const StreamedResults results{sums + padded * stride, sums + padded * (stride + 1), sums, stride};
  stream_queries(in, f, mask, weight_offset, next, results, memory);
  const int64_t row = in.query_offsets[f.sequence];
  for (int64_t r = 0; r < rows; r += kLanes) {
    HWY_ALIGN float factors[kLanes];
    HWY_ALIGN float lse[kLanes];
    const auto total = hn::Load(d, results.total + r), most = hn::Load(d, results.most + r);
    hn::Store(hn::IfThenZeroElse(hn::Eq(total, hn::Zero(d)), hn::Div(hn::Set(d, 1.0f), total)), d, factors);
    const auto safe = hn::IfThenZeroElse(hn::Eq(most, hn::Set(d, kMinusInfinity)), most);
    hn::Store(hn::Mul(hn::Add(safe, log2_vector(total)), hn::Set(d, kLn2)), d, lse);
    for (int64_t e = 0; e < std::min<int64_t>(kLanes, rows - r); ++e) {
      const int64_t i = (r + e) % f.n, head = f.head_begin + (r + e) / f.n;
      const float gate = in.gate_of(f.sequence, head);
      const auto factor = hn::Set(d, gate * factors[e]);
      float* const to = out.output.sequence(f.sequence, row) + (f.first + i) * out.output.stride +
                        head * out.output.step(in.d_value);
      for (int c = 0; c < in.d_value; c += kLanes) {
        store_first(hn::Mul(hn::Load(d, sums + (r + e) * stride + c), factor), to + c,
                    std::min(kLanes, in.d_value - c));
      }
      if (out.lse)
        *detail::number_at(out.lse, out.lse_strides, in.heads, f.sequence, row, f.first + i, head) = lse[e];
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

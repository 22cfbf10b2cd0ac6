// Part of the attention kernel's decoding: the rows that are computed together, their biases, masks and
// softmax.
#if defined(MULTIHEAD_KERNELS_ATTENTION_STREAM_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_STREAM_SCORES_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_STREAM_SCORES_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_STREAM_SCORES_INL_H_
#endif

#include <algorithm>

#include "multihead/kernels/attention_mask-inl.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/attention_stored_rows-inl.h"
#include "multihead/kernels/attention_stream_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// Queries [first, first + n) of heads [head_begin, head_end) of a sequence against its keys [begin, end).
/// In this file, row r is query first + r % n of head head_begin + r / n.
struct StreamedQueries {
  size_t sequence;
  int64_t first, n;
  int head_begin, head_end;
  int64_t begin, end;

  int64_t rows() const { return n * (head_end - head_begin); }
  /// The key or value head of row r, counted from that of row 0; each is shared by `rows_of_head` rows.
  int64_t group_of(int64_t r, int64_t rows_of_head) const {
    return (head_begin * n + r) / rows_of_head - head_begin * n / rows_of_head;
  }
  /// Whether the rows of each tile share one key or value head.
  bool shared(int64_t rows_of_head, int64_t tile) const {
    return rows_of_head % tile == 0 && head_begin * n % tile == 0 && rows() % tile == 0;
  }
};

/// A softmax over some of the keys, by row.
struct StreamedResults {
  float* most;   // the highest score, in units of log 2
  float* total;  // sum of 2^(score - most)
  float* sums;   // [rows, sums_stride] values weighted with 2^(score - most)
  int64_t sums_stride;

  StreamedResults from(int64_t row) const {
    return {most + row, total + row, sums + row * sums_stride, sums_stride};
  }
};

/// Where the scores of a call lie: [tile of rows][tile of keys][kTileRows][kQuad].
struct StreamedScores {
  float* data;
  int64_t tiles;  // of keys

  float* tile(int64_t row_tile, int64_t t) const { return data + (row_tile * tiles + t) * kLanes; }
  float& at(int64_t r, int64_t j) const {
    return tile(r / kTileRows, j / kQuad)[r % kTileRows * kQuad + j % kQuad];
  }
};

/// Columns [0, width) of rows of keys or values.
template <class T>
struct StreamedRows {
  StoredRows<T> rows;
  int64_t count, width;

  /// Prefetches part `part` of `parts` of the rows of tile t. After the last tile it goes on with the first
  /// tiles of `then`, unless that is null.
  HWY_INLINE void ask(int64_t t, int64_t part, int64_t parts, const StreamedRows* then) const {
    const int64_t first = t * kQuad;
    if (first >= count) {
      if (then) then->ask(t - (count + kQuad - 1) / kQuad, part, parts, nullptr);
      return;
    }
    constexpr int64_t kPiece = kLine<T>;
    const int64_t begin = part * width / parts / kPiece * kPiece;
    const int64_t end = (part + 1) * width / parts / kPiece * kPiece;
    for (int64_t j = first; j < std::min(first + kQuad, count); ++j) {
      const T* row = rows.row(j);
      for (int64_t c = begin; c < end; c += kPiece) hwy::Prefetch(row + c);
    }
  }
  /// The rows of tile t as float32, zeros behind the last row. Where they are no float32 they are widened once, for all
  /// heads, into `room`, of kQuad rows `wide()` numbers apart; else `room` has a row of zeros.
  HWY_INLINE void tile(int64_t t, float* room, const float* (&to)[kQuad]) const {
    const int64_t there = std::min<int64_t>(kQuad, count - t * kQuad);
    if constexpr (std::is_same_v<T, float>) {
      for (int64_t e = 0; e < kQuad; ++e) to[e] = e < there ? rows.row(t * kQuad + e) : room;
    } else {
      copy_rows(rows.from(t * kQuad), there, static_cast<int>(width), room, wide());
      for (int64_t e = 0; e < kQuad; ++e) {
        to[e] = room + e * wide();
        if (e >= there) std::fill_n(room + e * wide(), width, 0.0f);
      }
    }
  }
  int64_t wide() const { return copied_stride(width); }
  /// Room for tile().
  float* room(AlignedBuffer<float>& memory) const {
    if constexpr (!std::is_same_v<T, float>) return memory.get(kQuad * wide());
    float* const zeros = memory.get(width);
    if (count % kQuad != 0) std::fill_n(zeros, width, 0.0f);
    return zeros;
  }
};

/// Adds the bias to the scores, and sets them to -infinity where a query may not see a key.
HWY_NOINLINE inline void stream_bias(const AttentionInputs& in, const StreamedQueries& f,
                                     const BlockMask& mask, int64_t weight_offset,
                                     const StreamedScores& scores) {
  const size_t s = f.sequence;
  const int64_t row = in.query_offsets[s], queries = in.query_offsets[s + 1] - row;
  const int64_t keys = in.key_offsets[s + 1] - in.key_offsets[s];
  const int64_t shift = keys - queries, columns = in.bias.columns_of_vectors();
  if (!in.bias.none()) {
    for (int64_t r = 0; r < f.rows(); ++r) {
      const int64_t i = f.first + r % f.n;
      const int head = f.head_begin + static_cast<int>(r / f.n);
      const float* elements = nullptr;
      if (!in.bias.elements.empty()) {
        const detail::HeadElements of_head = detail::head_elements(in, s, head, queries, keys, weight_offset);
        elements = of_head.first + i * of_head.stride;
      }
      const float* const by_query =
          in.bias.by_query.cols == 0 ? nullptr : in.bias.by_query.row(row + i) + head * columns;
      for (int64_t j = f.begin; j < f.end; ++j) {
        const int64_t distance = j - (i + shift);
        float sum = in.bias.by_distances() ? detail::bias_at_distance(in.bias, head, distance) : 0.0f;
        if (elements) sum += elements[j];
        if (in.bias.by_vectors()) {
          const int64_t column = detail::vector_column(in.bias, distance);
          if (by_query) sum += by_query[column];
          if (in.bias.by_key.cols != 0) sum += in.bias.by_key(in.key_offsets[s] + j, head * columns + column);
        }
        scores.at(r, j - f.begin) += kLog2e * sum;
      }
    }
  }
  const int heads = f.head_end - f.head_begin;
  if (mask.cuts(f.begin, f.end)) {
    for_cut_keys(mask, f.begin, f.end, [&](int64_t from, int64_t to) HWY_ATTR {
      for (int64_t i = 0; i < f.n; ++i) {
        for (int64_t j = from; j < to; ++j) {
          if (in.mask.allows(row + f.first + i, f.first + i, j, queries, keys)) continue;
          for (int h = 0; h < heads; ++h) scores.at(h * f.n + i, j - f.begin) = kMinusInfinity;
        }
      }
    });
  }
}

/// scores = 2^(scores - their maximum), by row.
HWY_INLINE void stream_softmax(const StreamedScores& scores, int64_t rows, const StreamedResults& results) {
  const DF d;
  for (int64_t r = 0; r < rows; r += kTileRows) {
    float* const first = scores.tile(r / kTileRows, 0);
    auto most = hn::Load(d, first);
    for (int64_t t = 1; t < scores.tiles; ++t) most = hn::Max(most, hn::Load(d, first + t * kLanes));
    most = highest_of_quad(most);
    const auto base = hn::IfThenZeroElse(hn::Eq(most, hn::Set(d, kMinusInfinity)), most);
    auto total = hn::Zero(d);
    for (int64_t t = 0; t < scores.tiles; ++t) {
      const auto p = exp2_vector(hn::Sub(hn::Load(d, first + t * kLanes), base));
      total = hn::Add(total, p);
      hn::Store(p, d, first + t * kLanes);
    }
    HWY_ALIGN float highest[kLanes];
    HWY_ALIGN float sums[kLanes];
    hn::Store(most, d, highest);
    hn::Store(sum_of_quad(total), d, sums);
    for (int64_t i = 0; i < std::min<int64_t>(kTileRows, rows - r); ++i) {
      results.most[r + i] = highest[i * kQuad];
      results.total[r + i] = sums[i * kQuad];
    }
  }
}

/// Sums of values that skip masked keys, for values with NaN or infinity: a weight of 0 times such a value
/// would not be 0.
template <class T>
HWY_NOINLINE void stream_allowed_values(const AttentionInputs& in, const StreamedQueries& f,
                                        const StreamedScores& scores, const StreamedRows<T>& v,
                                        int64_t of_value, const StreamedResults& results) {
  const size_t s = f.sequence;
  const int64_t row = in.query_offsets[s], queries = in.query_offsets[s + 1] - row;
  const int64_t keys = in.key_offsets[s + 1] - in.key_offsets[s];
  for (int64_t r = 0; r < f.rows(); ++r) {
    const int64_t i = f.first + r % f.n;
    for (int64_t j = 0; j < v.count; ++j) {
      if (!in.mask.allows(row + i, i, f.begin + j, queries, keys)) continue;
      const T* const value = v.rows.row(j) + f.group_of(r, of_value) * in.d_value;
      for (int64_t c = 0; c < in.d_value; ++c) {
        results.sums[r * results.sums_stride + c] += scores.at(r, j) * as_float(value[c]);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

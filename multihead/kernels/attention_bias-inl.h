// Part of the attention kernel: adds a bias to a strip of scores, and computes the gradient of the bias.
//
// For each head the table of distances is copied in the order of (own position - key), so that the 16
// queries of a strip find their numbers side by side.
#if defined(MULTIHEAD_KERNELS_ATTENTION_BIAS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_BIAS_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_BIAS_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_BIAS_INL_H_
#endif

#include <algorithm>

#include "multihead/base/aligned.h"
#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/attention_plan.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// The bias of one head of one sequence, for some of its queries.
struct HeadBias {
  const float* by_distance = nullptr;  // [(last - first) + 16 + keys], in units of log 2
  int64_t origin = 0;                  // the number for (own - j) is by_distance[own - j + origin]
  int64_t shift = 0;                   // own = i + shift
  const float* elements = nullptr;     // [queries, keys]
  int64_t element_stride = 0;
  int64_t keys = 0;
  const float* by_query = nullptr;  // of the sequence's first query
  const float* by_key = nullptr;    // of its first key
  int64_t query_stride = 0, key_stride = 0;
  const int32_t* columns = nullptr;  // of by_query and by_key, as by_distance lies
  int64_t vector_columns = 0;        // how many there are
};

struct BiasMemory {
  AlignedBuffer<float> by_distance;
  AlignedBuffer<int32_t> columns;
};

/// The bias for queries [first, last) of a sequence whose first query is row `row` of all.
inline HeadBias head_bias(const AttentionInputs& in, size_t sequence, int64_t row, int head, int64_t first,
                          int64_t last, int64_t queries, int64_t keys, int64_t weight_offset,
                          BiasMemory& memory) {
  HeadBias b;
  b.shift = keys - queries;
  b.keys = keys;
  b.origin = keys - 1 - (first + b.shift);
  if (in.bias.by_distances()) {
    const int64_t size = last - first + kBlock + keys;
    float* to = memory.by_distance.get(size);
    for (int64_t x = 0; x < size; ++x) to[x] = kLog2e * detail::bias_at_distance(in.bias, head, b.origin - x);
    b.by_distance = to;
  }
  if (!in.bias.elements.empty()) {
    const detail::HeadElements elements =
        detail::head_elements(in, sequence, head, queries, keys, weight_offset);
    b.elements = elements.first;
    b.element_stride = elements.stride;
  }
  if (in.bias.by_vectors()) {
    b.vector_columns = in.bias.columns_of_vectors();
    const int64_t size = last - first + kBlock + keys;
    int32_t* to = memory.columns.get(size);
    for (int64_t x = 0; x < size; ++x)
      to[x] = static_cast<int32_t>(detail::vector_column(in.bias, b.origin - x));
    b.columns = to;
  }
  if (in.bias.by_query.cols != 0) {
    b.by_query = in.bias.by_query.row(row) + head * b.vector_columns;
    b.query_stride = in.bias.by_query.stride;
  }
  if (in.bias.by_key.cols != 0) {
    b.by_key = in.bias.by_key.row(in.key_offsets[sequence]) + head * b.vector_columns;
    b.key_stride = in.bias.by_key.stride;
  }
  return b;
}

/// strip += the numbers of by_query and by_key of keys [begin, end) and n queries from `first` on.
HWY_INLINE void add_by_vectors(const HeadBias& b, int64_t first, int n, int64_t begin, int64_t end,
                               float* HWY_RESTRICT strip) {
  const DF d;
  const DI di;
  const int32_t* at = b.columns + first + b.shift + b.origin;
  const auto log2e = hn::Set(d, kLog2e);
  for (int w = 0; w * kLanes < n; ++w) {
    // Of lanes behind the last query, which nobody reads, the numbers are those of the last query.
    const auto lanes = hn::Min(hn::Iota(di, 0), hn::Set(di, n - 1 - w * kLanes));
    const auto rows = hn::Mul(lanes, hn::Set(di, static_cast<int32_t>(b.query_stride)));
    const float* of_queries = b.by_query ? b.by_query + (first + w * kLanes) * b.query_stride : nullptr;
    for (int64_t j = begin; j < end; ++j) {
      const auto columns = hn::LoadU(di, at - j + w * kLanes);
      float* to = strip + (j - begin) * kBlock + w * kLanes;
      VF sum = hn::Zero(d);
      if (of_queries) sum = hn::GatherIndex(d, of_queries, hn::Add(rows, columns));
      if (b.by_key) sum = hn::Add(sum, hn::GatherIndex(d, b.by_key + j * b.key_stride, columns));
      hn::Store(hn::MulAdd(log2e, sum, hn::Load(d, to)), d, to);
    }
  }
}

/// strip += the bias of keys [begin, end) and n queries from `first` on, in units of log 2.
HWY_NOINLINE inline void add_bias(const HeadBias& b, int64_t first, int n, int64_t begin, int64_t end,
                                  float* HWY_RESTRICT strip) {
  const DF d;
  if (b.by_distance) {
    const float* at = b.by_distance + first + b.shift + b.origin;
    for (int64_t j = begin; j < end; ++j) {
      for (int w = 0; w < kVectors; ++w) {
        float* to = strip + (j - begin) * kBlock + w * kLanes;
        hn::Store(hn::Add(hn::Load(d, to), hn::LoadU(d, at - j + w * kLanes)), d, to);
      }
    }
  }
  for (int64_t j = begin; j < end && b.elements; ++j) {
    for (int i = 0; i < n; ++i) {
      strip[(j - begin) * kBlock + i] += kLog2e * b.elements[(first + i) * b.element_stride + j];
    }
  }
  if (b.columns) add_by_vectors(b, first, n, begin, end, strip);
}

/// Where the gradients of a head's bias are summed; null: not wanted.
struct HeadBiasGradient {
  float* by_distance = nullptr;  // as HeadBias::by_distance
  float* elements = nullptr;
  float* by_query = nullptr;  // [queries of a block, columns]
  float* by_key = nullptr;    // of the sequence's first key
  int64_t key_stride = 0;
};

/// Adds the gradient of a strip's scores to the gradients of the bias. block_first: the query of by_query's
/// first row.
HWY_NOINLINE inline void add_bias_gradient(const HeadBias& b, const HeadBiasGradient& g, int64_t block_first,
                                           int64_t first, int n, int64_t begin, int64_t end,
                                           const float* HWY_RESTRICT strip) {
  if (g.by_distance) {
    float* at = g.by_distance + first + b.shift + b.origin;
    for (int64_t j = begin; j < end; ++j) {
      for (int w = 0; w * kLanes < n; ++w) {
        const int there = std::min(kLanes, n - w * kLanes);
        const float* from = strip + (j - begin) * kBlock + w * kLanes;
        float* to = at - j + w * kLanes;
        store_first(hn::Add(load_first(to, there), load_first(from, there)), to, there);
      }
    }
  }
  for (int64_t j = begin; j < end && g.elements; ++j) {
    for (int i = 0; i < n; ++i) g.elements[(first + i) * b.keys + j] = strip[(j - begin) * kBlock + i];
  }
  if (!g.by_query && !g.by_key) return;
  for (int64_t j = begin; j < end; ++j) {
    const int32_t* columns = b.columns + first + b.shift + b.origin - j;
    for (int i = 0; i < n; ++i) {
      const float number = strip[(j - begin) * kBlock + i];
      if (g.by_query) g.by_query[(first - block_first + i) * b.vector_columns + columns[i]] += number;
      if (g.by_key) g.by_key[j * g.key_stride + columns[i]] += number;
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

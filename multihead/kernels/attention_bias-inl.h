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
  int64_t query_stride = 0;
  int64_t clip = 0;  // of by_query

  int64_t distances() const { return 2 * clip + 1; }
};

struct BiasMemory {
  AlignedBuffer<float> by_distance;
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
  if (in.bias.by_query.cols != 0) {
    b.clip = in.bias.query_clip;
    b.by_query = in.bias.by_query.row(row) + head * b.distances();
    b.query_stride = in.bias.by_query.stride;
  }
  return b;
}

/// Calls visit(j, lane, column of by_query) for keys [begin, end) and n queries from `first` on.
template <class Visit>
HWY_INLINE void for_each_of_query(const HeadBias& b, int64_t first, int n, int64_t begin, int64_t end,
                                  Visit visit) {
  for (int64_t j = begin; j < end; ++j) {
    for (int i = 0; i < n; ++i) {
      const int64_t distance = j - (first + i + b.shift);
      visit(j - begin, i, std::clamp(distance, -b.clip, b.clip) + b.clip);
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
  if (!b.by_query) return;
  for_each_of_query(b, first, n, begin, end, [&](int64_t j, int i, int64_t column) {
    strip[j * kBlock + i] += kLog2e * b.by_query[(first + i) * b.query_stride + column];
  });
}

/// Where the gradients of a head's bias are summed; null: not wanted.
struct HeadBiasGradient {
  float* by_distance = nullptr;  // as HeadBias::by_distance
  float* elements = nullptr;
  float* by_query = nullptr;  // [queries of a block, 2k + 1]
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
  if (!g.by_query) return;
  for_each_of_query(b, first, n, begin, end, [&](int64_t j, int i, int64_t column) {
    g.by_query[(first - block_first + i) * b.distances() + column] += strip[j * kBlock + i];
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

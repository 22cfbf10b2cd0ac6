#include "multihead/kernels/attention_decode.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/attention_decode.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/attention_few-inl.h"
#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/attention_mask-inl.h"

#ifndef MULTIHEAD_KERNELS_ATTENTION_DECODE_PART
#define MULTIHEAD_KERNELS_ATTENTION_DECODE_PART
namespace mh::detail {

/// One chunk of keys of one sequence, and where its partial softmax goes. Row r is query r % queries of head
/// r / queries.
struct DecodePart {
  int64_t sequence;
  int64_t begin, end;  // keys
  float* most;         // [rows], in units of log 2
  float* total;        // [rows] sum of 2^(score - most)
  float* sums;         // [rows, sums_stride] values so weighted
  int64_t sums_stride;
};

}  // namespace mh::detail
#endif

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

constexpr int64_t kTile = 16;  // keys of all heads that are asked for ahead: some 64 KiB

/// Calls visit(first, count) for rows [begin, end), four, two or one at a time.
template <class Visit>
HWY_INLINE void for_each_rows(int64_t begin, int64_t end, Visit visit) {
  for (int64_t r = begin; r < end;) {
    const int64_t n = end - r >= 4 ? 4 : end - r >= 2 ? 2 : 1;
    visit(r, static_cast<int>(n));
    r += n;
  }
}

/// Scores of kLanes keys against n rows, as [row][chunk].
template <int n>
HWY_INLINE void decode_scores(const float* const* queries, const float* const* keys, int size, float scale,
                              float* scores) {
  const float* query[n];
  for (int i = 0; i < n; ++i) query[i] = queries[i];
  VF score[n];
  few_scores<n>(query, keys, size, score);
  for (int i = 0; i < n; ++i) {
    hn::StoreU(hn::Mul(score[i], hn::Set(DF(), scale)), DF(), scores + i * detail::kDecodeKeys);
  }
}

/// sums[n rows] += weights * values of `keys` keys.
template <int n>
HWY_INLINE void decode_values(const float* weights, Rows v, int64_t keys, int size, float* sums,
                              int64_t stride) {
  constexpr int kColumns = kLanes == 8 ? 2 : 4;
  int64_t c = 0;
  for (; c + (kColumns - 1) * kLanes < size; c += kColumns * kLanes) {
    const auto last = static_cast<int>(std::min<int64_t>(kLanes, size - c - (kColumns - 1) * kLanes));
    few_values<n, kColumns, true>(weights, detail::kDecodeKeys, v, keys, n, nullptr, c, last, sums, stride);
  }
  for (; c < size; c += kLanes) {
    const auto last = static_cast<int>(std::min<int64_t>(kLanes, size - c));
    few_values<n, 1, true>(weights, detail::kDecodeKeys, v, keys, n, nullptr, c, last, sums, stride);
  }
}

/// weights = 2^(scores - their maximum) of the keys [0, n) a row may see.
HWY_INLINE void decode_softmax(float* scores, int64_t n, float& most, float& total) {
  const DF d;
  auto top = hn::Set(d, kMinusInfinity);
  for (int64_t j = 0; j < n; j += kLanes) top = hn::Max(top, hn::LoadU(d, scores + j));
  most = hn::GetLane(hn::MaxOfLanes(d, top));
  const auto base = hn::Set(d, most == kMinusInfinity ? 0.0f : most);
  auto sum = hn::Zero(d);
  for (int64_t j = 0; j < n; j += kLanes) {
    const auto p = exp2_vector(hn::Sub(hn::LoadU(d, scores + j), base));
    sum = hn::Add(sum, p);
    hn::StoreU(p, d, scores + j);
  }
  total = hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace

void decode_part(const AttentionInputs& in, const detail::DecodePart& part) {
  thread_local detail::Scratch<float> memory;
  thread_local std::vector<const float*> queries;
  constexpr int64_t kStride = detail::kDecodeKeys;
  const auto s = static_cast<size_t>(part.sequence);
  const int64_t row = in.query_offsets[s], n = in.query_offsets[s + 1] - row;
  const int64_t key = in.key_offsets[s], keys = in.key_offsets[s + 1] - key;
  const int64_t rows = n * in.heads;
  std::fill_n(part.most, rows, kMinusInfinity);
  std::fill_n(part.total, rows, 0.0f);
  std::fill_n(part.sums, rows * part.sums_stride, 0.0f);
  BlockMask mask;
  block_range(in.mask, 0, static_cast<int>(n), n, keys, mask);
  const int64_t begin = std::max(part.begin, mask.begin), end = std::min(part.end, mask.end);
  if (begin >= end) return;
  const int32_t* index = in.key_rows.empty() ? nullptr : in.key_rows.data() + key;
  const Rows k = Rows{in.k.row(index ? 0 : key), in.k.stride, index}.from(begin);
  const Rows v = Rows{in.v.row(index ? 0 : key), in.v.stride, index}.from(begin);
  const int64_t count = end - begin;
  float* scores = memory.get(rows * kStride);
  queries.resize(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    queries[static_cast<size_t>(r)] = in.q.row(row + r % n) + r / n * in.d_key;
  }
  const int64_t of_key = rows / in.key_heads, of_value = rows / in.value_heads;
  const auto ask = [](Rows from, int64_t j, int64_t all, int64_t column, int size) HWY_ATTR {
    const Rows ahead{from.data + column, from.stride, from.index};
    if (j < all) prefetch_rows(ahead.from(j), std::min(kTile, all - j), size);
  };
  for (int64_t j = 0; j < count; j += kTile) {
    for (int64_t g = 0; g < in.key_heads; ++g) {
      ask(k, j + kTile, count, g * in.d_key, in.d_key);
      if (j + kTile >= count && g < in.value_heads) ask(v, 0, count, g * in.d_value, in.d_value);
      for (int64_t t = j; t < std::min(j + kTile, count); t += kLanes) {
        const float* tile[kLanes];
        for (int64_t e = 0; e < kLanes; ++e) tile[e] = k.row(std::min(t + e, count - 1)) + g * in.d_key;
        for_each_rows(g * of_key, (g + 1) * of_key, [&](int64_t r, int some) HWY_ATTR {
          const auto score = some == 4 ? decode_scores<4> : some == 2 ? decode_scores<2> : decode_scores<1>;
          score(queries.data() + r, tile, in.d_key, in.scale * kLog2e, scores + r * kStride + t);
        });
      }
    }
  }
  const bool cut = mask.cuts(begin, end);
  const int64_t whole = (count + kLanes - 1) / kLanes * kLanes;
  for (int64_t r = 0; r < rows; ++r) {
    float* at = scores + r * kStride;
    for (int64_t j = count; j < whole; ++j) at[j] = kMinusInfinity;
    for (int64_t j = 0; j < count && cut; ++j) {
      if (!in.mask.allows(row + r % n, r % n, begin + j, n, keys)) at[j] = kMinusInfinity;
    }
    for (int64_t j = 0; j < count && in.bias.by_distances(); ++j) {
      const int64_t distance = begin + j - (r % n + keys - n);
      at[j] += kLog2e * detail::bias_at_distance(in.bias, static_cast<int>(r / n), distance);
    }
    decode_softmax(at, whole, part.most[r], part.total[r]);
  }
  for (int64_t j = 0; j < count; j += kTile) {
    const int64_t some_keys = std::min(kTile, count - j);
    for (int64_t u = 0; u < in.value_heads; ++u) {
      ask(v, j + kTile, count, u * in.d_value, in.d_value);
      const Rows values = Rows{v.data + u * in.d_value, v.stride, v.index}.from(j);
      if (cut && !all_finite(values, some_keys, in.d_value)) {
        // 0 times what a query may not see would leak.
        for (int64_t r = u * of_value; r < (u + 1) * of_value; ++r) {
          for (int64_t e = 0; e < some_keys; ++e) {
            if (!in.mask.allows(row + r % n, r % n, begin + j + e, n, keys)) continue;
            for (int64_t c = 0; c < in.d_value; ++c) {
              part.sums[r * part.sums_stride + c] += scores[r * kStride + j + e] * values.row(e)[c];
            }
          }
        }
        continue;
      }
      for_each_rows(u * of_value, (u + 1) * of_value, [&](int64_t r, int some) HWY_ATTR {
        const auto add = some == 4 ? decode_values<4> : some == 2 ? decode_values<2> : decode_values<1>;
        add(scores + r * kStride + j, values, some_keys, in.d_value, part.sums + r * part.sums_stride,
            part.sums_stride);
      });
    }
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(decode_part);

namespace {

/// The parts of head h become its output, in the order of their keys.
void merge_parts(const AttentionInputs& in, const AttentionOutputs& out, const detail::DecodePart* parts,
                 int64_t count, int h) {
  const auto s = static_cast<size_t>(parts->sequence);
  const int64_t n = in.query_offsets[s + 1] - in.query_offsets[s];
  const float gate = in.gate.empty() ? 1.0f : in.gate[static_cast<size_t>(h)];
  for (int64_t i = 0; i < n; ++i) {
    const int64_t r = h * n + i, row = in.query_offsets[s] + i;
    float* output = out.output.row(row) + int64_t{h} * in.d_value;
    std::fill_n(output, in.d_value, 0.0f);
    float most = -std::numeric_limits<float>::infinity(), total = 0;
    for (int64_t p = 0; p < count; ++p) most = std::max(most, parts[p].most[r]);
    for (int64_t p = 0; p < count; ++p) {
      if (parts[p].total[r] == 0) continue;
      const float factor = std::exp2(parts[p].most[r] - most);
      const float* sums = parts[p].sums + r * parts[p].sums_stride;
      total += factor * parts[p].total[r];
      for (int64_t c = 0; c < in.d_value; ++c) output[c] += factor * sums[c];
    }
    const float factor = total == 0 ? 0 : gate / total;
    for (int64_t c = 0; c < in.d_value; ++c) output[c] *= factor;
    if (out.lse) {
      const double lse =
          0.69314718055994531 * (static_cast<double>(most) + std::log2(static_cast<double>(total)));
      out.lse[row * in.heads + h] =
          total == 0 ? -std::numeric_limits<float>::infinity() : static_cast<float>(lse);
    }
  }
}

}  // namespace

void detail::attention_decode(const AttentionInputs& in, const AttentionOutputs& out) {
  thread_local std::vector<DecodePart> all_parts;
  thread_local std::vector<int64_t> first_parts;  // of each such sequence
  thread_local Scratch<float> memory;
  all_parts.clear();
  first_parts.clear();
  const int64_t stride = (int64_t{in.d_value} + 15) / 16 * 16;
  const auto rows_of = [&](int64_t s) {
    const auto at = static_cast<size_t>(s);
    return (in.query_offsets[at + 1] - in.query_offsets[at]) * int64_t{in.heads};
  };
  int64_t size = 0;
  for (int64_t s = 0; s + 1 < static_cast<int64_t>(in.query_offsets.size()); ++s) {
    if (!attention_decodes(in, s)) continue;
    first_parts.push_back(static_cast<int64_t>(all_parts.size()));
    const auto at = static_cast<size_t>(s);
    const int64_t keys = in.key_offsets[at + 1] - in.key_offsets[at];
    for (int64_t j = 0; j < keys; j += kDecodeKeys) {
      all_parts.push_back({s, j, std::min(keys, j + kDecodeKeys), nullptr, nullptr, nullptr, stride});
      size += rows_of(s) * (stride + 2);
    }
  }
  if (all_parts.empty()) return;
  float* at = memory.get(size);
  for (DecodePart& part : all_parts) {
    part.sums = at;
    part.most = part.sums + rows_of(part.sequence) * stride;
    part.total = part.most + rows_of(part.sequence);
    at = part.total + rows_of(part.sequence);
  }
  first_parts.push_back(static_cast<int64_t>(all_parts.size()));
  const DecodePart* const parts = all_parts.data();  // taken here: these are others in another thread
  const int64_t* const first = first_parts.data();
  mh::parallel_for(static_cast<int64_t>(all_parts.size()), [&](int64_t task) {
    HWY_DYNAMIC_DISPATCH(decode_part)(in, parts[task]);
  });
  mh::parallel_for((static_cast<int64_t>(first_parts.size()) - 1) * in.heads, [&](int64_t task) {
    const int64_t s = task / in.heads;
    merge_parts(in, out, parts + first[s], first[s + 1] - first[s], static_cast<int>(task % in.heads));
  });
}

}  // namespace mh
#endif

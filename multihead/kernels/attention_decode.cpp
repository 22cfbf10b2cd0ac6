#include "multihead/kernels/attention_decode.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "multihead/base/aligned.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/attention_decode.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/attention_stream-inl.h"

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

template <class T>
void decode_part_of(const AttentionInputs& in, const detail::DecodePart& part, int64_t weight_offset) {
  thread_local StreamMemory memory;
  const auto s = static_cast<size_t>(part.sequence);
  const int64_t n = in.query_offsets[s + 1] - in.query_offsets[s];
  BlockMask mask;
  block_range(in.mask, 0, static_cast<int>(n), n, in.key_offsets[s + 1] - in.key_offsets[s], mask);
  const StreamedQueries f{.sequence = s,
                          .first = 0,
                          .n = n,
                          .head_begin = 0,
                          .head_end = in.heads,
                          .begin = part.begin,
                          .end = part.end};
  stream_queries<T>(in, f, mask, weight_offset, nullptr, {part.most, part.total, part.sums, part.sums_stride},
                    memory);
}

}  // namespace

void decode_part(const AttentionInputs& in, const detail::DecodePart& part, int64_t weight_offset) {
  if (in.halves()) return decode_part_of<uint16_t>(in, part, weight_offset);
  decode_part_of<float>(in, part, weight_offset);
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
  const float gate = in.gate_of(s, h);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t r = h * n + i, row = in.query_offsets[s];
    float* output = out.output.sequence(s, row) + i * out.output.stride + h * out.output.step(in.d_value);
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
      *detail::number_at(out.lse, out.lse_strides, in.heads, s, row, i, h) =
          total == 0 ? -std::numeric_limits<float>::infinity() : static_cast<float>(lse);
    }
  }
}

}  // namespace

void detail::attention_decode(const AttentionInputs& in, const AttentionOutputs& out,
                              const int64_t* weight_offsets) {
  thread_local std::vector<DecodePart> all_parts;
  thread_local std::vector<int64_t> first_parts;  // of each such sequence
  thread_local AlignedBuffer<float> memory;
  all_parts.clear();
  first_parts.clear();
  const int64_t stride = (int64_t{in.d_value} + 15) / 16 * 16;
  const auto rows_of = [&](int64_t s) {
    const auto at = static_cast<size_t>(s);
    return (in.query_offsets[at + 1] - in.query_offsets[at]) * int64_t{in.heads};
  };
  const auto padded = [](int64_t rows) { return (rows + 15) / 16 * 16; };  // sums begin at whole vectors
  int64_t size = 0;
  for (int64_t s = 0; s + 1 < static_cast<int64_t>(in.query_offsets.size()); ++s) {
    if (!attention_decodes(in, s)) continue;
    first_parts.push_back(static_cast<int64_t>(all_parts.size()));
    const auto at = static_cast<size_t>(s);
    const int64_t keys = in.key_offsets[at + 1] - in.key_offsets[at];
    for (int64_t j = 0; j < keys; j += kDecodeKeys) {
      all_parts.push_back({s, j, std::min(keys, j + kDecodeKeys), nullptr, nullptr, nullptr, stride});
      size += rows_of(s) * stride + 2 * padded(rows_of(s));
    }
  }
  if (all_parts.empty()) return;
  float* at = memory.get(size);
  for (DecodePart& part : all_parts) {
    part.sums = at;
    part.most = part.sums + rows_of(part.sequence) * stride;
    part.total = part.most + padded(rows_of(part.sequence));
    at = part.most + 2 * padded(rows_of(part.sequence));
  }
  first_parts.push_back(static_cast<int64_t>(all_parts.size()));
  const DecodePart* const parts = all_parts.data();  // taken here: these are others in another thread
  const int64_t* const first = first_parts.data();
  mh::parallel_for(static_cast<int64_t>(all_parts.size()), [&](int64_t task) {
    const int64_t offset = weight_offsets ? weight_offsets[parts[task].sequence] : 0;
    HWY_DYNAMIC_DISPATCH(decode_part)(in, parts[task], offset);
  });
  mh::parallel_for((static_cast<int64_t>(first_parts.size()) - 1) * in.heads, [&](int64_t task) {
    const int64_t s = task / in.heads;
    merge_parts(in, out, parts + first[s], first[s + 1] - first[s], static_cast<int>(task % in.heads));
  });
}

}  // namespace mh
#endif

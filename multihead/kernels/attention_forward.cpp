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

#include "multihead/kernels/attention_few-inl.h"
#include "multihead/kernels/attention_meet-inl.h"
#include "multihead/kernels/attention_statistics-inl.h"
#include "multihead/kernels/attention_stream-inl.h"
#include "multihead/kernels/attention_strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

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
                             HeadOfPiece& h, const NextItem& next, ForwardMemory& memory) {
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

}  // namespace

/// next_task: the one that this thread is likely to do then, or null.
void forward_task(const AttentionInputs& in, const AttentionOutputs& out, const detail::AttentionTask& task,
                  const detail::AttentionTask* next_task, const int64_t* weight_offsets) {
  thread_local ForwardMemory memory;
  thread_local FewMemory few_memory;
  thread_local StreamMemory stream_memory;
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
      h.output_scale = in.gate_of(s, head) * (in.dropout.active() ? in.dropout.keep_scale() : 1.0f);
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
        if (last && keys <= kFewKeys && !in.dropout.active() && (in.bias.none() || queries == 1)) {
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
      const bool streamed = few > 0 && queries == 1;
      for (int head = task.head_begin; head < task.head_end && !decoded && !streamed; ++head) {
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
              h.q.from(strip.first - first), h.k, h.v, few, strip.row, strip.first, queries, keys, head, s};
          forward_few(in, out, f, strip.mask, few_memory);
        }
        if (piece.strips == 0) continue;
        forward_head(in, out, piece, h, next_item(in, task, s, head, next_task), memory);
      }
      if (streamed && !decoded) {
        StreamedRows next{};
        if (s + 1 < static_cast<size_t>(task.sequence_end)) {
          const int64_t next_key = in.key_offsets[s + 1];
          const int32_t* next_index = in.key_rows.empty() ? nullptr : in.key_rows.data() + next_key;
          next = {{in.k.row(next_index ? 0 : next_key), in.k.stride, next_index},
                  in.key_offsets[s + 2] - next_key,
                  in.k.cols};
        }
        forward_streamed(in, out,
                         {.sequence = s,
                          .first = 0,
                          .n = 1,
                          .head_begin = task.head_begin,
                          .head_end = task.head_end,
                          .begin = 0,
                          .end = keys},
                         piece.strip[0].mask, weight_offsets ? weight_offsets[s] : 0, &next, stream_memory);
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
  detail::attention_decode(in, out, weight_offsets);
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

#include <algorithm>
#include <cstddef>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention.h"
#include "multihead/kernels/attention_check.h"
#include "multihead/kernels/attention_decode.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/attention_forward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/attention_few-inl.h"
#include "multihead/kernels/attention_meet-inl.h"
#include "multihead/kernels/attention_piece-inl.h"
#include "multihead/kernels/attention_statistics-inl.h"
#include "multihead/kernels/attention_stream-inl.h"
#include "multihead/kernels/attention_strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

/// The strips of a head, chunk by chunk of its keys.
template <class T>
HWY_INLINE void forward_strips(const AttentionInputs& in, const AttentionOutputs& out, const Piece& piece,
                               StoredHead<T>& h, const NextItem<T>& next, ForwardMemory& memory) {
  Running running;
  h.queries = memory.queries.get(int64_t{piece.strips} * kBlock * in.d_key);
  for (int s = 0; s < piece.strips; ++s) {
    transpose_block(h.q.from(int64_t{s} * kBlock), piece.strip[s].n, in.d_key, product_factor(in),
                    h.queries + int64_t{s} * kBlock * in.d_key);
    std::fill_n(running.most[s], kBlock, kMinusInfinity);
    std::fill_n(running.total[s], kBlock, 0.0f);
  }
  h.sums_stride = (in.d_value + kLanes - 1) / kLanes * kLanes;
  h.sums = memory.sums.get(kTaskStrips * kBlock * h.sums_stride);
  // Rows lie far apart; a copy of them that several blocks of queries read pays off.
  const bool copied = h.k.index != nullptr || piece.strips > kGroups;
  for (int64_t j = piece.begin / kChunk * kChunk; j < piece.end; j += kChunk) {
    Chunk chunk{std::max(j, piece.begin), std::min(j + kChunk, piece.end), {}, {}};
    const int64_t keys = chunk.end - chunk.begin;
    chunk.k = plain_rows(h.k.from(chunk.begin), keys, in.d_key, copied, memory.keys);
    chunk.v = plain_rows(h.v.from(chunk.begin), keys, in.d_value, copied, memory.values, &chunk.finite);
    Ahead ahead;
    const int64_t after = std::min(kChunk, piece.end - chunk.end);
    const bool small = piece.strips <= kGroups && piece.end <= kSmall;
    if (small) {
      // Several small items fit in the second-level cache; asking costs more than it gains.
    } else if (after > 0) {
      ahead.add(h.k.from(chunk.end), after, in.d_key);
      ahead.add(h.v.from(chunk.end), after, in.d_value);
    } else {
      ahead.add(next.k, next.keys, in.d_key);
      ahead.add(next.v, next.keys, in.d_value);
      ahead.add(Rows{h.output, out.output.stride}, piece.last - piece.first, in.d_value);
      ahead.add(next.q, next.queries, in.d_key);
    }
    for (int s = 0; s < piece.strips; s += kGroups) {
      meet(in, out, piece, h, chunk, s, std::min(kGroups, piece.strips - s), running,
           small ? nullptr : &ahead, memory);
    }
  }
  for (int s = 0; s < piece.strips; ++s) {
    finish_strip(in, out, piece, piece.strip[s], h, running.most[s], running.total[s],
                 h.sums + int64_t{s} * kBlock * h.sums_stride);
  }
}

/// The few queries of a head that remain after its strips.
template <class T>
HWY_INLINE void forward_rest(const AttentionInputs& in, const AttentionOutputs& out, const Piece& piece,
                             const StoredHead<T>& h, const NextItem<T>& next, ForwardMemory& memory,
                             FewMemory& few) {
  prefetch_rows(next.q, std::min<int64_t>(next.queries, kBlock), in.d_key);
  if (next.keys <= 64) {
    prefetch_rows(next.k, next.keys, in.d_key);
    prefetch_rows(next.v, next.keys, in.d_value);
  }
  const Strip& rest = piece.strip[piece.strips];
  Rows k, v;
  if constexpr (std::is_same_v<T, float>) {
    k = h.k, v = h.v;
  } else {
    k = plain_rows(h.k, rest.mask.end, in.d_key, true, memory.keys);
    v = plain_rows(h.v, rest.mask.end, in.d_value, true, memory.values);
  }
  const FewQueries f{h.q.from(rest.first - piece.first),
                     k,
                     v,
                     piece.few,
                     h.output + (rest.first - piece.first) * out.output.stride,
                     h.lse ? h.lse + rest.first * piece.lse_stride : nullptr,
                     piece.lse_stride,
                     rest.row,
                     rest.first,
                     piece.queries,
                     piece.keys,
                     h.head,
                     piece.sequence};
  forward_few(in, out, f, rest.mask, few);
}

/// The one query of a sequence, of all heads together.
template <class T>
HWY_INLINE void forward_single(const AttentionInputs& in, const AttentionOutputs& out,
                               const detail::AttentionTask& task, const Piece& piece, int64_t weight_offset,
                               StreamMemory& memory) {
  StreamedRows<T> next{};
  if (piece.sequence + 1 < static_cast<size_t>(task.sequence_end)) {
    const int64_t key = in.key_offsets[piece.sequence + 1];
    const int32_t* index = in.key_rows.empty() ? nullptr : in.key_rows.data() + key;
    const auto k = detail::keys_of<T>(in);
    next = {{k.sequence(piece.sequence + 1, index ? 0 : key), k.stride, index},
            in.key_offsets[piece.sequence + 2] - key,
            k.cols};
  }
  forward_streamed(in, out,
                   {.sequence = piece.sequence,
                    .first = 0,
                    .n = 1,
                    .head_begin = task.head_begin,
                    .head_end = task.head_end,
                    .begin = 0,
                    .end = piece.keys},
                   piece.strip[0].mask, weight_offset, &next, memory);
}

/// The weights and statistics of a head, where they are asked for.
template <class T>
HWY_INLINE void inspect_head(const AttentionInputs& in, const AttentionOutputs& out, const Piece& piece,
                             const StoredHead<T>& h, int64_t weight_offset, ForwardMemory& memory) {
  for (int g = 0; g < piece.strips + (piece.few > 0); ++g) {
    const Strip& strip = piece.strip[g];
    if (out.statistics.wanted()) statistics_of_strip(in, out, piece, h, strip, memory);
    if (!out.weights) continue;
    float* weights = out.weights + weight_offset + (h.head * piece.queries + strip.first) * piece.keys;
    weights_of_strip(in, h, strip, h.q.from(strip.first - piece.first), piece.keys, weights, memory);
  }
}

template <class T>
void forward_task_of(const AttentionInputs& in, const AttentionOutputs& out,
                     const detail::AttentionTask& task, const detail::AttentionTask* next_task,
                     const int64_t* weight_offsets) {
  thread_local ForwardMemory memory;
  thread_local FewMemory few_memory;
  thread_local StreamMemory stream_memory;
  thread_local StoredPiece<T> piece;
  begin_task(in, out, piece);
  for (auto s = static_cast<size_t>(task.sequence_begin); s < static_cast<size_t>(task.sequence_end); ++s) {
    begin_sequence(in, out, s, piece);
    const int64_t end = std::min(piece.queries, task.query_end);
    const int64_t weight_offset = weight_offsets ? weight_offsets[s] : 0;
    HeadBias bias;
    for (int64_t i = task.query_begin; i < end; i = piece.last) {
      cut_piece(in, i, end, piece);
      if (task.head_end - task.head_begin > 1) share_masks(in, piece, memory);
      switch (piece.kind) {
        case PieceKind::kStrips:
          for (int head = task.head_begin; head < task.head_end; ++head) {
            StoredHead<T> h = head_of_piece(in, out, piece, head, end, weight_offset, bias, memory);
            if (piece.few > 0)
              forward_rest(in, out, piece, h, next_item<T>(in, task, s, head, nullptr, piece), memory,
                           few_memory);
            if (piece.strips > 0)
              forward_strips(in, out, piece, h, next_item<T>(in, task, s, head, next_task, piece), memory);
          }
          break;
        case PieceKind::kStreamed:
          forward_single<T>(in, out, task, piece, weight_offset, stream_memory);
          break;
        case PieceKind::kDecoded:
          break;
      }
      if (!out.weights && !out.statistics.wanted()) continue;
      for (int head = task.head_begin; head < task.head_end; ++head) {
        const StoredHead<T> h = head_of_piece(in, out, piece, head, end, weight_offset, bias, memory);
        inspect_head(in, out, piece, h, weight_offset, memory);
      }
    }
  }
}

}  // namespace

/// next_task: the one that this thread is likely to do then, or null.
void forward_task(const AttentionInputs& in, const AttentionOutputs& out, const detail::AttentionTask& task,
                  const detail::AttentionTask* next_task, const int64_t* weight_offsets) {
  if (in.halves()) return forward_task_of<uint16_t>(in, out, task, next_task, weight_offsets);
  forward_task_of<float>(in, out, task, next_task, weight_offsets);
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mh {
HWY_EXPORT(forward_task);

void attention_forward(const AttentionInputs& in, const AttentionOutputs& out) {
  detail::check_attention(in, "attention_forward");
  detail::check_result("attention_forward", "output", in, out.output, in.q.rows, in.heads, in.d_value);
  detail::check_number_strides("attention_forward", "lse_strides", in, out.lse_strides);
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

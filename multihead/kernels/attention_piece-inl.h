// Part of the attention kernel's forward pass: cuts a task into pieces, and decides how each is computed.
#if defined(MULTIHEAD_KERNELS_ATTENTION_PIECE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_PIECE_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_PIECE_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_PIECE_INL_H_
#endif

#include <algorithm>

#include "multihead/kernels/attention_decode.h"
#include "multihead/kernels/attention_few-inl.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/attention_strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// The first rows of what comes after a head of a piece: as much as can be asked for early.
template <class T>
struct NextItem {
  Rows q;
  StoredRows<T> k, v;
  int64_t queries = 0, keys = 0;
};
template <class T>
HWY_INLINE NextItem<T> next_item(const AttentionInputs& in, const detail::AttentionTask& task, size_t s,
                                 int head, const detail::AttentionTask* next_task,
                                 const StoredPiece<T>& piece) {
  NextItem<T> next;
  const auto k = detail::keys_of<T>(in), v = detail::values_of<T>(in);
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
  const int64_t first_row = index ? 0 : key, key_head = int64_t{head} * in.key_heads / in.heads;
  const int64_t value_head = int64_t{head} * in.value_heads / in.heads;
  next.queries = std::min<int64_t>(in.query_offsets[s + 1] - row - first, kTaskStrips * kBlock);
  next.keys = std::min<int64_t>(in.key_offsets[s + 1] - key, kChunk);
  const bool same = s == piece.sequence;
  next.q = {(same ? piece.q : in.q.sequence(s, row)) + first * in.q.stride + head * piece.q_step,
            in.q.stride};
  next.k = {(same ? piece.k : k.sequence(s, first_row)) + key_head * piece.k_step, k.stride, index};
  next.v = {(same ? piece.v : v.sequence(s, first_row)) + value_head * piece.v_step, v.stride, index};
  return next;
}

/// Sets what the pieces of a task have in common.
template <class T>
HWY_INLINE void begin_task(const AttentionInputs& in, const AttentionOutputs& out, StoredPiece<T>& piece) {
  piece.q_step = in.q.step(in.d_key);
  piece.k_step = detail::keys_of<T>(in).step(in.d_key);
  piece.v_step = detail::values_of<T>(in).step(in.d_value);
  piece.output_step = out.output.step(in.d_value);
  piece.lse_step = out.lse_strides.given() ? out.lse_strides.head : 1;
  piece.lse_stride = out.lse_strides.given() ? out.lse_strides.token : in.heads;
}

/// Sets what the pieces of sequence s have in common.
template <class T>
HWY_INLINE void begin_sequence(const AttentionInputs& in, const AttentionOutputs& out, size_t s,
                               StoredPiece<T>& piece) {
  const int64_t key = in.key_offsets[s];
  piece.sequence = s;
  piece.row = in.query_offsets[s];
  piece.queries = in.query_offsets[s + 1] - piece.row;
  piece.keys = in.key_offsets[s + 1] - key;
  piece.index = in.key_rows.empty() ? nullptr : in.key_rows.data() + key;
  const int64_t first_row = piece.index ? 0 : key;
  piece.q = in.q.sequence(s, piece.row);
  piece.k = detail::keys_of<T>(in).sequence(s, first_row);
  piece.v = detail::values_of<T>(in).sequence(s, first_row);
  piece.output = out.output.sequence(s, piece.row);
  piece.lse = out.lse ? detail::number_at(out.lse, out.lse_strides, in.heads, s, piece.row, 0, 0) : nullptr;
}

/// Takes strips of the sequence's queries from `first` on, as many as fit before `end`.
HWY_INLINE void cut_piece(const AttentionInputs& in, int64_t first, int64_t end, Piece& piece) {
  piece.strips = piece.few = 0;
  piece.begin = piece.keys;
  piece.end = 0;
  piece.first = first;
  int64_t i = first;
  for (; i < end && piece.strips < kTaskStrips && piece.few == 0; i += kBlock) {
    Strip& strip = piece.strip[piece.strips];
    strip.n = static_cast<int>(std::min<int64_t>(kBlock, end - i));
    strip.row = piece.row + i;
    strip.first = i;
    strip.allow = nullptr;
    block_range(in.mask, i, strip.n, piece.queries, piece.keys, strip.mask);
    const bool last = strip.n <= (i == 0 ? kFewQueries : kFewRest);
    const bool streamed = piece.queries == 1 && detail::can_stream(in);
    if (last && piece.keys <= kFewKeys && !in.dropout.active() && (in.bias.none() || streamed)) {
      piece.few = strip.n;
    } else {
      ++piece.strips;
      if (strip.mask.begin < strip.mask.end) {
        piece.begin = std::min(piece.begin, strip.mask.begin);
        piece.end = std::max(piece.end, strip.mask.end);
      }
    }
  }
  piece.last = std::min(i, end);
  piece.kind = detail::attention_decodes(in, static_cast<int64_t>(piece.sequence)) ? PieceKind::kDecoded
               : piece.few > 0 && piece.queries == 1 && detail::can_stream(in)     ? PieceKind::kStreamed
                                                                                   : PieceKind::kStrips;
}

/// Masks are the same for all heads; where each strip has one chunk, so are their bits.
HWY_INLINE void share_masks(const AttentionInputs& in, Piece& piece, ForwardMemory& memory) {
  if (in.mask.kind() == Mask::Kind::kNone) return;
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

/// end: of the task's queries in this sequence, for which `bias` is made.
template <class T>
HWY_INLINE StoredHead<T> head_of_piece(const AttentionInputs& in, const AttentionOutputs& out,
                                       const StoredPiece<T>& piece, int head, int64_t end,
                                       int64_t weight_offset, HeadBias& bias, ForwardMemory& memory) {
  StoredHead<T> h;
  const int64_t k_stride = detail::keys_of<T>(in).stride, v_stride = detail::values_of<T>(in).stride;
  h.head = head;
  h.q = {piece.q + piece.first * in.q.stride + head * piece.q_step, in.q.stride};
  h.k = {piece.k + int64_t{head} * in.key_heads / in.heads * piece.k_step, k_stride, piece.index};
  h.v = {piece.v + int64_t{head} * in.value_heads / in.heads * piece.v_step, v_stride, piece.index};
  h.output = piece.output + piece.first * out.output.stride + head * piece.output_step;
  h.lse = piece.lse ? piece.lse + head * piece.lse_step : nullptr;
  h.output_scale = in.gate_of(piece.sequence, head) * (in.dropout.active() ? in.dropout.keep_scale() : 1.0f);
  if (!in.bias.none()) {
    bias = head_bias(in, piece.sequence, piece.row, head, piece.first, end, piece.queries, piece.keys,
                     weight_offset, memory.bias);
    h.bias = &bias;
  }
  return h;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

// Part of the attention kernel's backward pass: prefetches what the next item of a task will read.
#if defined(MULTIHEAD_KERNELS_ATTENTION_GRADIENT_AHEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_AHEAD_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_AHEAD_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_GRADIENT_AHEAD_INL_H_
#endif

#include "multihead/kernels/attention_gradient_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// A head of the first token of a sequence, which is row `row` of all.
template <class T>
HWY_INLINE T* head_of(const BasicHeadsView<T>& view, size_t sequence, int64_t row, int64_t head,
                      int64_t size) {
  return view.sequence(sequence, row) + head * view.step(size);
}
/// The heads of a sequence's first token; found once for all its heads.
template <class T>
struct FirstToken {
  T* data;
  int64_t step, stride;

  HWY_INLINE T* head(int64_t h) const { return data + h * step; }
};
template <class T>
HWY_INLINE FirstToken<T> first_token(const BasicHeadsView<T>& view, size_t sequence, int64_t row,
                                     int64_t size) {
  return {view.sequence(sequence, row), view.step(size), view.stride};
}
/// What the backward pass reads and writes of a sequence.
struct SequencePlaces {
  FirstToken<const float> q, k, v, output, d_output;
  FirstToken<float> d_q, d_k, d_v;
};
HWY_INLINE SequencePlaces places_of(const AttentionInputs& in, const AttentionGradients& g, size_t s) {
  const int64_t row = in.query_offsets[s], key = in.key_offsets[s];
  return {first_token(in.q, s, row, in.d_key),         first_token(in.k, s, key, in.d_key),
          first_token(in.v, s, key, in.d_value),       first_token(g.output, s, row, in.d_value),
          first_token(g.d_output, s, row, in.d_value), first_token(g.d_q, s, row, in.d_key),
          first_token(g.d_k, s, key, in.d_key),        first_token(g.d_v, s, key, in.d_value)};
}
/// Adds to `ahead` the first rows that the item after this head will read.
HWY_INLINE void add_next_item(const AttentionInputs& in, const AttentionGradients& g,
                              const detail::BackwardTask& task, size_t s, int head,
                              const detail::BackwardTask* next_task, Ahead& ahead) {
  int64_t begin = task.key_begin, end = task.key_end;
  if (++head == task.head_end) {
    head = task.head_begin;
    if (++s == static_cast<size_t>(task.sequence_end)) {
      if (!next_task) return;
      s = static_cast<size_t>(next_task->sequence_begin);
      head = next_task->head_begin;
      begin = next_task->key_begin;
      end = next_task->key_end;
    }
  }
  const int64_t row = in.query_offsets[s], queries = std::min(in.query_offsets[s + 1] - row, kQueries);
  const int64_t key = in.key_offsets[s], keys = std::min(in.key_offsets[s + 1] - key - begin, end - begin);
  const int64_t key_head = int64_t{head} * in.key_heads / in.heads;
  const int64_t value_head = int64_t{head} * in.value_heads / in.heads;
  ahead.add(Rows{head_of(in.k, s, key, key_head, in.d_key), in.k.stride}.from(begin), keys, in.d_key);
  ahead.add(Rows{head_of(in.v, s, key, value_head, in.d_value), in.v.stride}.from(begin), keys, in.d_value);
  ahead.add(Rows{head_of(in.q, s, row, head, in.d_key), in.q.stride}, queries, in.d_key);
  ahead.add(Rows{head_of(g.d_output, s, row, head, in.d_value), g.d_output.stride}, queries, in.d_value);
  ahead.add(Rows{head_of(g.output, s, row, head, in.d_value), g.output.stride}, queries, in.d_value);
}

/// Prefetches all that an item reads and writes, if it is small.
HWY_INLINE void prefetch_small(const AttentionInputs& in, const SequencePlaces& at, size_t s, int head) {
  const int64_t queries = in.query_offsets[s + 1] - in.query_offsets[s];
  const int64_t keys = in.key_offsets[s + 1] - in.key_offsets[s];
  if (queries > kQueries || keys > kKeyChunk) return;
  const int64_t key_head = int64_t{head} * in.key_heads / in.heads;
  const int64_t value_head = int64_t{head} * in.value_heads / in.heads;
  prefetch_rows(Rows{at.q.head(head), at.q.stride}, queries, in.d_key);
  prefetch_rows(Rows{at.k.head(key_head), at.k.stride}, keys, in.d_key);
  prefetch_rows(Rows{at.v.head(value_head), at.v.stride}, keys, in.d_value);
  prefetch_rows(Rows{at.d_output.head(head), at.d_output.stride}, queries, in.d_value);
  prefetch_rows(Rows{at.d_q.head(head), at.d_q.stride}, queries, in.d_key);
  prefetch_rows(Rows{at.d_k.head(key_head), at.d_k.stride}, keys, in.d_key);
  prefetch_rows(Rows{at.d_v.head(value_head), at.d_v.stride}, keys, in.d_value);
}
/// The same for the item after a head. here: of the head's sequence.
HWY_INLINE void prefetch_next_small(const AttentionInputs& in, const AttentionGradients& g,
                                    const detail::BackwardTask& task, size_t s, int head,
                                    const SequencePlaces& here) {
  if (++head < task.head_end) return prefetch_small(in, here, s, head);
  if (++s < static_cast<size_t>(task.sequence_end))
    prefetch_small(in, places_of(in, g, s), s, task.head_begin);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

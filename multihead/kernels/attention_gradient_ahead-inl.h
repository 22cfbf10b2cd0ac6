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
  const int64_t key = in.key_offsets[s] + begin, keys = std::min(in.key_offsets[s + 1] - key, end - begin);
  const int64_t q = int64_t{head} * in.d_key, o = int64_t{head} * in.d_value;
  const int64_t k = int64_t{head} * in.key_heads / in.heads * in.d_key;
  const int64_t v = int64_t{head} * in.value_heads / in.heads * in.d_value;
  ahead.add({in.k.row(key) + k, in.k.stride}, keys, in.d_key);
  ahead.add({in.v.row(key) + v, in.v.stride}, keys, in.d_value);
  ahead.add({in.q.row(row) + q, in.q.stride}, queries, in.d_key);
  ahead.add({g.d_output.row(row) + o, g.d_output.stride}, queries, in.d_value);
  ahead.add({g.output.row(row) + o, g.output.stride}, queries, in.d_value);
}

/// Prefetches all that the next item reads and writes, if that item is small.
HWY_INLINE void prefetch_next_small(const AttentionInputs& in, const AttentionGradients& g,
                                    const detail::BackwardTask& task, size_t s, int head) {
  if (++head == task.head_end) {
    if (++s >= static_cast<size_t>(task.sequence_end)) return;
    head = task.head_begin;
  }
  const int64_t row = in.query_offsets[s], queries = in.query_offsets[s + 1] - row;
  const int64_t key = in.key_offsets[s], keys = in.key_offsets[s + 1] - key;
  if (queries > kQueries || keys > kKeyChunk) return;
  const int64_t q = int64_t{head} * in.d_key, o = int64_t{head} * in.d_value;
  const int64_t k = int64_t{head} * in.key_heads / in.heads * in.d_key;
  const int64_t v = int64_t{head} * in.value_heads / in.heads * in.d_value;
  prefetch_rows({in.q.row(row) + q, in.q.stride}, queries, in.d_key);
  prefetch_rows({in.k.row(key) + k, in.k.stride}, keys, in.d_key);
  prefetch_rows({in.v.row(key) + v, in.v.stride}, keys, in.d_value);
  prefetch_rows({g.d_output.row(row) + o, g.d_output.stride}, queries, in.d_value);
  prefetch_rows({g.d_q.row(row) + q, g.d_q.stride}, queries, in.d_key);
  prefetch_rows({g.d_k.row(key) + k, g.d_k.stride}, keys, in.d_key);
  prefetch_rows({g.d_v.row(key) + v, g.d_v.stride}, keys, in.d_value);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif

// Part of the attention kernel: where its inputs lie, and how the work is cut into tasks.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "multihead/kernels/attention.h"

namespace mh::detail {

/// A task of the forward pass: queries [query_begin, query_end) of heads [head_begin, head_end) of
/// sequences [sequence_begin, sequence_end). query_end may lie beyond the end of a sequence. A task of
/// several sequences has all their queries; only one long sequence is cut by its queries.
struct AttentionTask {
  int32_t sequence_begin, sequence_end;
  int32_t head_begin, head_end;
  int64_t query_begin, query_end;
};

/// A task of the backward pass: keys [key_begin, key_end) of heads [head_begin, head_end) of sequences
/// [sequence_begin, sequence_end). key_end may lie beyond the end of a sequence. A task of several
/// sequences has all their keys; only one long sequence is cut by its keys.
struct BackwardTask {
  int32_t sequence_begin, sequence_end;
  int32_t head_begin, head_end;
  int64_t key_begin, key_end;
  int64_t part;   // number of the first sequence's partial result among all of the plan
  int64_t turns;  // where the sequence's turns begin; -1: this task has all keys
};
struct BackwardPlan {
  std::vector<BackwardTask> tasks;  // those of one sequence in the order of their keys
  int64_t parts = 0;  // number of partial results (of gates and biases); they are merged in order
  /// A turn for each head and block of kBackwardQueries queries of a sequence cut into several tasks: its
  /// tasks add to the same gradient one after the other.
  int64_t turns = 0;
};
constexpr int64_t kBackwardQueries = 64;

/// Returns what AttentionBias::slopes and by_distance add at a distance.
float bias_at_distance(const AttentionBias& bias, int head, int64_t distance);
/// The column for a distance that is clipped to k, among buckets where there are some.
inline int64_t column_of(int64_t distance, int64_t k, std::span<const int32_t> buckets) {
  const int64_t at = (distance < -k ? -k : distance > k ? k : distance) + k;
  return buckets.empty() ? at : buckets[static_cast<size_t>(at)];
}
/// The column of by_distance for a distance.
inline int64_t bias_column(const AttentionBias& bias, int64_t distance) {
  return column_of(distance, bias.distance_clip, bias.buckets);
}
/// The column of by_query and by_key for a distance, of one head.
inline int64_t vector_column(const AttentionBias& bias, int64_t distance) {
  return column_of(distance, bias.vector_clip, bias.vector_buckets);
}

/// Where the number of head `head` of token i of a sequence lies, whose first token is row `row` of all.
template <class T>
T* number_at(T* numbers, const NumberStrides& strides, int heads, size_t sequence, int64_t row, int64_t i,
             int64_t head) {
  if (!strides.given()) return numbers + (row + i) * heads + head;
  return numbers + static_cast<int64_t>(sequence) * strides.sequence + head * strides.head +
         i * strides.token;
}

/// The biases of one head's scores: query i's begin at first + i * stride.
struct HeadElements {
  const float* first;
  int64_t stride;
};
inline HeadElements head_elements(const AttentionInputs& in, size_t sequence, int64_t head, int64_t queries,
                                  int64_t keys, int64_t weight_offset) {
  const float* first = in.bias.elements.data();
  if (!in.bias.element_strides) return {first + weight_offset + head * queries * keys, keys};
  const ElementStrides& strides = *in.bias.element_strides;
  return {first + static_cast<int64_t>(sequence) * strides.sequence + head * strides.head, strides.query};
}

/// [S]: where each sequence's part of AttentionOutputs::weights begins. Valid until this thread's next
/// call.
const int64_t* attention_weight_offsets(const AttentionInputs& inputs);

/// Tasks of about equal work; they depend on the shape alone. Valid until this thread's next call. all:
/// includes the sequences that attention_decode() computes.
const std::vector<AttentionTask>& attention_tasks(const AttentionInputs& inputs, bool all);

/// Keys and values as T, float or uint16_t for bfloat16: those of the two kinds that there are.
template <class T>
BasicHeadsView<const T> keys_of(const AttentionInputs& in) {
  if constexpr (std::is_same_v<T, float>) {
    return in.k;
  } else {
    return in.half_k;
  }
}
template <class T>
BasicHeadsView<const T> values_of(const AttentionInputs& in) {
  if constexpr (std::is_same_v<T, float>) {
    return in.v;
  } else {
    return in.half_v;
  }
}

/// Whether all heads can be computed together, reading whole rows of keys and values.
inline bool can_stream(const AttentionInputs& in) {
  return in.k.side_by_side(in.d_key) && in.v.side_by_side(in.d_value);
}

/// The same for the backward pass. Heads that share a key or value head stay in one task, since they add to
/// the same gradient, and a long sequence is cut by its keys.
const BackwardPlan& backward_plan(const AttentionInputs& inputs);

}  // namespace mh::detail

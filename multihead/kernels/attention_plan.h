// Inside of the attention kernel: is the description possible, and how is it cut into tasks?
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/kernels/attention.h"

namespace mh::detail {

/// Query rows [query_begin, query_end) (cut off at each sequence's number) of heads [head_begin, head_end) of
/// sequences [sequence_begin, sequence_end); only a task of one long sequence has not all rows.
struct AttentionTask {
  int32_t sequence_begin, sequence_end;
  int32_t head_begin, head_end;
  int64_t query_begin, query_end;
};

/// Keys [key_begin, key_end) (cut off at each sequence's number) of heads [head_begin, head_end) of sequences
/// [sequence_begin, sequence_end); only a task of one long sequence has not all keys.
struct BackwardTask {
  int32_t sequence_begin, sequence_end;
  int32_t head_begin, head_end;
  int64_t key_begin, key_end;
  int64_t part;   // number of the first sequence's part among all
  int64_t turns;  // where those of the sequence begin, or -1 if this task has all keys
};
struct BackwardPlan {
  std::vector<BackwardTask> tasks;  // a sequence's tasks in the order of their keys
  int64_t parts = 0;                // results that are merged in the order of their numbers
  int64_t turns = 0;  // [head][block of kBackwardQueries queries] of each sequence with several tasks
};
constexpr int64_t kBackwardQueries = 64;

/// What AttentionBias::slopes and by_distance add at a distance.
float bias_at_distance(const AttentionBias& bias, int head, int64_t distance);
/// The column of by_distance.
inline int64_t bias_column(const AttentionBias& bias, int64_t distance) {
  const int64_t k = bias.distance_clip, at = (distance < -k ? -k : distance > k ? k : distance) + k;
  return bias.buckets.empty() ? at : bias.buckets[static_cast<size_t>(at)];
}

/// [S] where each sequence's part of AttentionOutputs::weights begins. They live until this thread's next
/// call.
const int64_t* attention_weight_offsets(const AttentionInputs& inputs);

/// Throws ShapeError or UsageError naming the field.
void check_attention(const AttentionInputs& inputs, const char* caller);
void check_result(const char* caller, const char* name, const ConstMatrixView& view, int64_t rows,
                  int64_t cols);

/// Tasks of about equal work, cut by the shape alone. They live until this thread's next call.
/// all: those that attention_decode does too.
const std::vector<AttentionTask>& attention_tasks(const AttentionInputs& inputs, bool all);

/// The same for the backward pass, where heads that share a key or value head stay together (they add to the
/// same gradient) and a long sequence is cut by its keys.
const BackwardPlan& backward_plan(const AttentionInputs& inputs);

}  // namespace mh::detail

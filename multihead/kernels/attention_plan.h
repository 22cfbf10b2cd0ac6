// Part of the attention kernel: checks the inputs and cuts the work into tasks.
#pragma once

#include <cstdint>
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
/// The column of by_distance for a distance.
inline int64_t bias_column(const AttentionBias& bias, int64_t distance) {
  const int64_t k = bias.distance_clip, at = (distance < -k ? -k : distance > k ? k : distance) + k;
  return bias.buckets.empty() ? at : bias.buckets[static_cast<size_t>(at)];
}

/// [S]: where each sequence's part of AttentionOutputs::weights begins. Valid until this thread's next
/// call.
const int64_t* attention_weight_offsets(const AttentionInputs& inputs);

/// Throws ShapeError or UsageError naming the field that is wrong.
void check_attention(const AttentionInputs& inputs, const char* caller);
void check_gate(const char* caller, const char* name, const ConstMatrixView& view, int64_t sequences,
                int64_t heads);
void check_result(const char* caller, const char* name, const ConstMatrixView& view, int64_t rows,
                  int64_t cols);

/// Tasks of about equal work; they depend on the shape alone. Valid until this thread's next call. all:
/// includes the sequences that attention_decode() computes.
const std::vector<AttentionTask>& attention_tasks(const AttentionInputs& inputs, bool all);

/// The same for the backward pass. Heads that share a key or value head stay in one task, since they add to
/// the same gradient, and a long sequence is cut by its keys.
const BackwardPlan& backward_plan(const AttentionInputs& inputs);

}  // namespace mh::detail

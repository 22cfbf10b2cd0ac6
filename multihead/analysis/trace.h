// One layer of attention on one sequence, step by step, as one draws it: every tensor with its name, how it
// came about, and whose it is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// What the rows or columns of a tensor are.
enum class TraceAxis { kNumbers, kQueries, kKeys };

struct TraceStep {
  std::string name;     // "q_0"
  std::string formula;  // "x w_q_0 + b_q_0"
  std::string owner;    // "head 0", "heads 0, 1", "all heads"
  Tensor value;         // masked scores are -infinity
  TraceAxis rows = TraceAxis::kNumbers, columns = TraceAxis::kNumbers;
};

struct AttentionTrace {
  std::string attention;  // the layer's name
  HeadGeometry geometry;  // completed()
  /// The rows; for each head its weights, queries, keys, values, scores, weights and output (what heads share
  /// stands with the first of them; talking heads first have all scores, then all weights); all heads'
  /// outputs side by side; W^O; the layer's output.
  std::vector<TraceStep> steps;
  /// Largest difference of the heads' outputs here, by the formula, from those of the layer itself, and the
  /// largest magnitude among them.
  double difference = 0, magnitude = 0;

  /// Throws UsageError naming the steps there are.
  const TraceStep& step(std::string_view name) const;
};

/// x [Tq, d_model] attends to memory [Tk, d_model], or to itself when that has no rows. Throws ShapeError on
/// rows of another width.
AttentionTrace trace_attention(const MultiHeadAttention& layer, ConstMatrixView x, ConstMatrixView memory,
                               const Mask& mask);

/// Attention `name` of a model that reads these tokens; target: what the decoder reads, for its attentions.
/// Throws UsageError on a name that the model does not have, and when tokens are missing.
AttentionTrace trace_attention(const Model& model, std::string_view name, std::span<const int32_t> source,
                               std::span<const int32_t> target);

}  // namespace mh

// Traces one layer of attention on one sequence: every step of the formula as a tensor, with its name, the
// formula that made it, and the heads that it belongs to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/heads/sites/site_values.h"
#include "multihead/models/model.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// What the rows or columns of a tensor stand for.
enum class TraceAxis { kNumbers, kQueries, kKeys };

struct TraceStep {
  std::string name;        // "q_0"
  std::string formula;     // "x w_q_0 + b_q_0"
  std::string owner;       // "head 0", "heads 0, 1", "all heads"
  std::vector<int> heads;  // the same as numbers; empty: all
  Tensor value;            // masked scores are -infinity
  TraceAxis rows = TraceAxis::kNumbers, columns = TraceAxis::kNumbers;
};

struct AttentionTrace {
  std::string attention;  // the layer's name
  HeadGeometry geometry;  // completed()
  /// In this order: the input rows; for each head its parameters, queries, keys, values, scores, weights
  /// and output; the outputs of all heads side by side; W^O; the output of the layer. What several heads
  /// share is listed with the first of them; talking heads have first all scores, then all weights.
  std::vector<TraceStep> steps;
  /// The largest difference between the heads' outputs in this trace and those of the layer itself, and the
  /// largest magnitude of these outputs.
  double difference = 0, magnitude = 0;

  /// Returns a step by name. Throws UsageError listing the steps that exist.
  const TraceStep& step(std::string_view name) const;
};

/// Traces a layer whose rows x [Tq, d_model] attend to memory [Tk, d_model], or to themselves when the
/// memory has no rows. Throws ShapeError when rows have another width, and Error that names the first step whose
/// numbers are not finite.
AttentionTrace trace_attention(const MultiHeadAttention& layer, ConstMatrixView x, ConstMatrixView memory,
                               const Mask& mask);

/// The sites whose values a trace of this attention starts from.
std::vector<std::string> sites_of_trace(const Model& model, std::string_view attention);
/// Traces attention `name` of a model from what was kept of one sequence at these sites. Throws UsageError on a name that
/// the model does not have, and when they were not kept.
AttentionTrace trace_attention(const Model& model, std::string_view name, const SiteValues& seen);

/// Traces attention `name` of a model that reads these tokens. target: what a translator's decoder reads; needed for
/// the decoder's attentions. Throws UsageError on a name that the model does not have, and when tokens are
/// missing.
AttentionTrace trace_attention(const Model& model, std::string_view name, std::span<const int32_t> source,
                               std::span<const int32_t> target);

}  // namespace mh

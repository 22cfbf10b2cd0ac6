// Collects the steps of a trace (heads/reports/trace/trace.h).
#pragma once

#include <string>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/heads/reports/trace/trace.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {

class TraceRecorder {
 public:
  explicit TraceRecorder(const MultiHeadAttention& layer);

  /// Adds a step. heads: those that the tensor belongs to; empty: all heads. Throws Error that names the step
  /// when a number is not finite.
  void add(std::string name, std::string formula, const std::vector<int>& heads, Tensor value,
           TraceAxis rows = TraceAxis::kNumbers, TraceAxis columns = TraceAxis::kNumbers);
  /// Scores that were added before, with -infinity where the mask hides the key.
  void add_masked(std::string name, std::string formula, int head, Tensor scores);
  TracedMap add_map(std::string name, std::string formula, int head, Var value);

  AttentionTrace trace;

 private:
  void push(std::string name, std::string formula, const std::vector<int>& heads, Tensor value,
            TraceAxis rows, TraceAxis columns);
  std::string owner_of(const std::vector<int>& heads) const;
};

}  // namespace mh

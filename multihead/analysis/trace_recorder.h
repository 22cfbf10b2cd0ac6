// Collects the steps of a trace (analysis/trace.h).
#pragma once

#include <string>
#include <vector>

#include "multihead/analysis/trace.h"
#include "multihead/autograd/tape.h"
#include "multihead/nn/geometries/weight_scheme.h"

namespace mh {

class TraceRecorder {
 public:
  explicit TraceRecorder(const MultiHeadAttention& layer);

  /// Adds a step. heads: those that the tensor belongs to; empty: all heads.
  void add(std::string name, std::string formula, const std::vector<int>& heads, Tensor value,
           TraceAxis rows = TraceAxis::kNumbers, TraceAxis columns = TraceAxis::kNumbers);
  TracedMap add_map(std::string name, std::string formula, int head, Var value);

  AttentionTrace trace;

 private:
  std::string owner_of(const std::vector<int>& heads) const;
};

}  // namespace mh

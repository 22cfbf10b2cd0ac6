#include "multihead/heads/reports/trace/trace_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"

namespace mh {

TraceRecorder::TraceRecorder(const MultiHeadAttention& layer) {
  trace.attention = layer.name();
  trace.geometry = layer.geometry();
}

/// "head 0", "heads 0, 1", "all heads".
std::string TraceRecorder::owner_of(const std::vector<int>& heads) const {
  const int all = trace.geometry.heads;
  if (heads.empty() || (all > 1 && static_cast<int>(heads.size()) == all)) return "all heads";
  return fmt::format("{} {}", heads.size() == 1 ? "head" : "heads", fmt::join(heads, ", "));
}

void TraceRecorder::push(std::string name, std::string formula, const std::vector<int>& heads, Tensor value,
                         TraceAxis rows, TraceAxis columns) {
  trace.steps.push_back(
      {std::move(name), std::move(formula), owner_of(heads), heads, std::move(value), rows, columns});
}

void TraceRecorder::add(std::string name, std::string formula, const std::vector<int>& heads, Tensor value,
                        TraceAxis rows, TraceAxis columns) {
  if (!all_finite(value.view())) {
    throw Error(
        fmt::format("step {} ({}) of {} has numbers that are not finite; the rows or the weights are "
                    "too large for float32",
                    name, formula, trace.attention));
  }
  push(std::move(name), std::move(formula), heads, std::move(value), rows, columns);
}

void TraceRecorder::add_masked(std::string name, std::string formula, int head, Tensor scores) {
  push(std::move(name), std::move(formula), {head}, std::move(scores), TraceAxis::kQueries, TraceAxis::kKeys);
}

TracedMap TraceRecorder::add_map(std::string name, std::string formula, int head, Var value) {
  add(name, std::move(formula), {head}, copied(value.value()), TraceAxis::kQueries, TraceAxis::kKeys);
  return {std::move(name), value};
}

}  // namespace mh

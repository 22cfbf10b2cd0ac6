#include "multihead/analysis/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "multihead/analysis/attention_name.h"
#include "multihead/base/error.h"

namespace mh {
namespace {

/// Watches one layer attend.
class Watch final : public Observer {
 public:
  explicit Watch(std::string_view name) : name_(name) {}
  bool wants_weights(std::string_view name) const override { return name == name_; }
  void weights(const ObservedWeights&) override {}
  void rows(std::string_view, ProjectedTo to, ConstMatrixView rows) override {
    (to == ProjectedTo::kQueries ? queries : memory) = copied(rows);
  }

  Tensor queries, memory;

 private:
  std::string_view name_;
};

}  // namespace

const TraceStep& AttentionTrace::step(std::string_view name) const {
  std::vector<std::string> names;
  for (const TraceStep& step : steps) {
    if (step.name == name) return step;
    names.push_back(step.name);
  }
  throw UsageError(fmt::format("the trace has no step '{}'; it has {}", name, fmt::join(names, ", ")));
}

AttentionTrace trace_attention(const Model& model, std::string_view name, std::span<const int32_t> source,
                               std::span<const int32_t> target) {
  const MultiHeadAttention& layer = model.attention(name);
  const AttentionKind kind = attention_place(name).kind;
  if (source.empty()) throw UsageError("there is no source to trace; give at least one token");
  const bool reads_target = kind != AttentionKind::kEncoderSelf && model.facts().source_vocabulary > 0;
  if (reads_target && target.empty())
    throw UsageError(fmt::format("{} is the decoder's; give a target for it to read", name));
  Watch watch(layer.name());
  Tape tape;
  Context context{.tape = tape, .observer = &watch};
  Batch read, written;
  read.add(source, 0);
  written.add(target, 0);
  model.read(context, read.view(), reads_target ? written.view() : Sequences());
  const Tensor none;
  return trace_attention(layer, watch.queries.view(),
                         kind == AttentionKind::kCross ? watch.memory.view() : none.view(),
                         kind == AttentionKind::kDecoderSelf ? Mask::causal() : Mask::none());
}

}  // namespace mh

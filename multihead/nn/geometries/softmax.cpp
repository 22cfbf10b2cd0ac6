// The weights A of a head are the softmax of its scores, and its output is A V (Vaswani et al. 2017, eq.
// 1), by the fused kernel, and by the composed path for heads whose scores or weights are changed or watched.
#include <fmt/format.h>

#include "multihead/autograd/replace.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

class SoftmaxValues final : public WeightedValues {
 public:
  Var apply(const HeadsOf& whose, Var q, Var k, Var v, const AttentionInputs& inputs,
            const LearnedInputs& learned) const override {
    Tape& tape = whose.context.tape;
    if (whose.context.sites == nullptr) return attention(tape, q, k, v, inputs, learned);
    const std::vector<ComposedHead> composed = composed_heads(whose, q, k, v, inputs, learned);
    if (composed.empty()) return attention(tape, q, k, v, inputs, learned);
    LearnedInputs ungated = learned;
    ungated.gates = {};
    Var heads = attention(tape, q, k, v, inputs, ungated);
    for (const auto& [head, output] : composed)
      heads = replace_columns(tape, heads, int64_t{head} * inputs.d_value, output);
    return gated(tape, heads, learned, inputs);
  }
};

class SoftmaxScheme final : public WeightScheme {
 public:
  std::unique_ptr<WeightedValues> make(const HeadGeometry&, int) const override {
    return std::make_unique<SoftmaxValues>();
  }
  void trace_head(WeighingTrace& trace, int head, const std::vector<TracedMap>& weights) const override {
    trace.add_output(head, fmt::format("{} {}", weights[0].name, trace.name_of_values(head)),
                     traced_average(trace, head, weights[0]));
  }
};

}  // namespace

template <>
const WeightScheme& weight_scheme<HeadWeights::kSoftmax>() {
  static const SoftmaxScheme scheme;
  return scheme;
}

}  // namespace mh

// The weights A of a head are the softmax of its scores, and its output is A V (Vaswani et al. 2017, eq.
// 1), by the fused kernel.
#include <fmt/format.h>

#include "multihead/nn/geometries/weight_scheme.h"

namespace mh {
namespace {

class SoftmaxValues final : public WeightedValues {
 public:
  Var apply(Tape& tape, Var q, Var k, Var v, const AttentionInputs& inputs, const LearnedInputs& learned,
            float* weights) const override {
    return attention(tape, q, k, v, inputs, learned, weights);
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

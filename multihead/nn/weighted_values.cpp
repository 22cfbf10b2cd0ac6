#include "multihead/nn/weighted_values.h"

#include "multihead/autograd/attention_maps.h"

namespace mh {
namespace {

class SoftmaxValues final : public WeightedValues {
 public:
  Var apply(Tape& tape, Var q, Var k, Var v, const AttentionInputs& inputs, const LearnedBias& bias,
            float* weights) const override {
    return attention(tape, q, k, v, inputs, bias, weights);
  }
};

}  // namespace

Var WeightedValues::maps(Tape& tape, Var q, Var k, const AttentionInputs& inputs,
                         const LearnedBias& bias) const {
  return softmax_maps(tape, attention_scores(tape, q, k, inputs, bias), inputs);
}

std::unique_ptr<WeightedValues> make_weighted_values(const HeadGeometry& geometry, int layer) {
  switch (geometry.weights) {
    case HeadWeights::kDifferential:
      return make_differential_values(geometry, layer);
    case HeadWeights::kTalking:
      return make_talking_values(geometry);
    case HeadWeights::kSoftmax:
      break;
  }
  return std::make_unique<SoftmaxValues>();
}

}  // namespace mh

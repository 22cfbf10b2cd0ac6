#include "multihead/nn/weighted_values.h"

namespace mh {
namespace {

class SoftmaxValues final : public WeightedValues {
 public:
  Var apply(Tape& tape, Var q, Var k, Var v, const AttentionInputs& inputs, const LearnedBias& bias,
            float* weights) override {
    return attention(tape, q, k, v, inputs, bias, weights);
  }
};

}  // namespace

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

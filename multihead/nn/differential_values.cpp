// (A_1 - lambda A_2) V: the weights of a head are the difference of two softmaxes, which takes noise out of
// both (Ye et al. 2024). The fused kernel runs 2 h heads of which neighbours share their values; the
// difference of their outputs is the output of the difference. Then each head has a norm of its own, times
// 1 - lambda_init, with lambda_init = 0.8 - 0.6 exp(-0.3 l) in layer l = 0, 1, ...
#include <cmath>

#include "multihead/autograd/differential.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/weighted_values.h"

namespace mh {
namespace {

class DifferentialValues final : public WeightedValues {
 public:
  DifferentialValues(const HeadGeometry& g, int layer)
      : heads_(g.heads), start_(lambda_init(layer)), lambda_(4, g.d_key), gain_(1, g.d_value) {}

  Var apply(Tape& tape, Var q, Var k, Var v, const AttentionInputs& inputs, const LearnedBias& bias,
            float* weights) const override {
    AttentionInputs pairs = inputs;
    pairs.gate = {};  // before the norm a gate would be no gate
    const Var both = attention(tape, q, k, v, pairs, bias, weights);
    if (weights != nullptr) subtract_maps(pairs, weights);
    return differential_heads(tape, both, heads_, parameters(), inputs.gate);
  }
  void initialise(Random& random) override {
    normal(lambda_, random, 0.1);
    fill(gain_, 1);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    visitor(name + ".lambda", lambda_);
    visitor(name + ".head_norm", gain_);
  }

 private:
  DifferentialParameters parameters() const { return {.vectors = &lambda_, .gain = &gain_, .start = start_}; }

  /// Pairs of maps become A_1 - lambda A_2, in place: what is written lies before what is still to be read.
  void subtract_maps(const AttentionInputs& pairs, float* weights) const {
    const float lambda = differential_lambda(parameters());
    const float* from = weights;
    float* to = weights;
    for (size_t s = 0; s + 1 < pairs.query_offsets.size(); ++s) {
      const int64_t size = int64_t{pairs.query_offsets[s + 1] - pairs.query_offsets[s]} *
                           (pairs.key_offsets[s + 1] - pairs.key_offsets[s]);
      for (int h = 0; h < heads_; ++h, from += 2 * size, to += size) {
        for (int64_t n = 0; n < size; ++n) to[n] = from[n] - lambda * from[size + n];
      }
    }
  }

  int heads_;
  float start_;
  Parameter lambda_, gain_;
};

}  // namespace

float lambda_init(int layer) {
  return static_cast<float>(0.8 - 0.6 * std::exp(-0.3 * layer));
}

std::unique_ptr<WeightedValues> make_differential_values(const HeadGeometry& geometry, int layer) {
  return std::make_unique<DifferentialValues>(geometry, layer);
}

}  // namespace mh

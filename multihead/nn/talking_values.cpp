// Talking heads (Shazeer et al. 2020): the maps of all heads are mixed before the softmax and again after it,
// softmax(S P) P' with P and P' [heads, heads]. A softmax of mixed scores needs every Tq x Tk matrix at once,
// so this takes the composed path and not the fused kernel: slow, and memory that grows with the square of
// the length. Both matrices start as 1, which is heads that do not talk. Dropout is of the softmax's weights.
#include <algorithm>

#include "multihead/autograd/attention_maps.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/weighted_values.h"

namespace mh {
namespace {

class TalkingValues final : public WeightedValues {
 public:
  explicit TalkingValues(int heads) : scores_(heads, heads), weights_(heads, heads) {}

  Var apply(Tape& tape, Var q, Var k, Var v, const AttentionInputs& inputs, const LearnedBias& bias,
            float* weights) const override {
    const Var each = softmaxes(tape, q, k, inputs, bias);
    const Var mixed = mix_maps(tape, drop_maps(tape, each, inputs), weights_, inputs);
    if (weights != nullptr) {
      const Var undropped = inputs.dropout.active() ? mix_maps(tape, each, weights_, inputs) : mixed;
      std::copy_n(undropped.value().data, undropped.cols(), weights);
    }
    return weigh_values(tape, mixed, v, inputs);
  }
  Var maps(Tape& tape, Var q, Var k, const AttentionInputs& inputs, const LearnedBias& bias) const override {
    return mix_maps(tape, softmaxes(tape, q, k, inputs, bias), weights_, inputs);
  }
  void initialise(Random&) override {
    for (Parameter* mixing : {&scores_, &weights_}) {
      fill(*mixing, 0);
      for (int64_t h = 0; h < mixing->value.rows(); ++h) mixing->value(h, h) = 1;
      mixing->changed();
    }
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    visitor(name + ".mixing_of_scores", scores_);
    visitor(name + ".mixing_of_weights", weights_);
  }

 private:
  Var softmaxes(Tape& tape, Var q, Var k, const AttentionInputs& inputs, const LearnedBias& bias) const {
    const Var scores = attention_scores(tape, q, k, inputs, bias);
    return softmax_maps(tape, mix_maps(tape, scores, scores_, inputs), inputs);
  }

  Parameter scores_, weights_;  // [heads, heads]: from, to
};

}  // namespace

std::unique_ptr<WeightedValues> make_talking_values(const HeadGeometry& geometry) {
  return std::make_unique<TalkingValues>(geometry.heads);
}

}  // namespace mh

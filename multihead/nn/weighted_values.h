// From queries, keys and values to the heads' outputs: what the weights are, one class a kind (geometries/).
#pragma once

#include <memory>
#include <string>

#include "multihead/autograd/attention.h"
#include "multihead/base/random.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

class WeightedValues {
 public:
  WeightedValues() = default;
  WeightedValues(const WeightedValues&) = delete;
  WeightedValues& operator=(const WeightedValues&) = delete;
  virtual ~WeightedValues() = default;

  /// The heads' outputs side by side, [Nq, heads * d_value]. `inputs`: all but the matrices and the learned
  /// biases; its gate is of heads. `weights`: null, or room for attention_weights_size(inputs) numbers, of
  /// which the maps of each head, laid out as AttentionOutputs::weights, fill the first.
  virtual Var apply(Tape& tape, Var q, Var k, Var v, const AttentionInputs& inputs, const LearnedBias& bias,
                    float* weights) const = 0;
  /// The weights as a value, laid out as AttentionOutputs::weights, by the composed path; with differential
  /// weights those of all softmaxes.
  virtual Var maps(Tape& tape, Var q, Var k, const AttentionInputs& inputs, const LearnedBias& bias) const;
  virtual void initialise(Random&) {}
  /// In a fixed order, names "NAME.lambda", ...
  virtual void visit(const std::string& /*name*/, const ParameterVisitor&) {}
};

/// geometry: completed(). `layer`: which of the stack, from 0.
std::unique_ptr<WeightedValues> make_weighted_values(const HeadGeometry& geometry, int layer);

}  // namespace mh

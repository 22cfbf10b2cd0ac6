// WeightedValues: from queries, keys and values to the heads' outputs. Each kind of weights
// (softmax, differential, talking) is one class behind this interface (geometries/).
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

  /// The heads' outputs side by side, [Nq, heads * d_value]. `inputs`: everything but the matrices, the
  /// learned biases and the gates, which have a number for each head. `weights`: null, or room for
  /// attention_weights_size(inputs) numbers; the weights of the heads, laid out as
  /// AttentionOutputs::weights, fill the first of them.
  virtual Var apply(Tape& tape, Var q, Var k, Var v, const AttentionInputs& inputs,
                    const LearnedInputs& learned, float* weights) const = 0;
  /// Returns the weights as a value that gradients flow through, laid out as AttentionOutputs::weights, by
  /// the composed path. With differential heads these are the weights of every softmax.
  virtual Var maps(Tape& tape, Var q, Var k, const AttentionInputs& inputs,
                   const LearnedInputs& learned) const;
  virtual void initialise(Random&) {}
  /// Calls the visitor with every parameter in a fixed order, "NAME.lambda", ...
  virtual void visit(const std::string& /*name*/, const ParameterVisitor&) {}
};

/// Makes the weights that `geometry`, completed(), describes. `layer`: its place in the stack, from 0.
std::unique_ptr<WeightedValues> make_weighted_values(const HeadGeometry& geometry, int layer);

}  // namespace mh

// WeightedValues: from queries, keys and values to the heads' outputs. Each kind of weights
// (softmax, differential, talking) is one class behind this interface (geometries/).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/autograd/attention_maps.h"
#include "multihead/base/random.h"
#include "multihead/nn/context.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

/// Of which attention the heads are, the rows of its queries, and who is called at its sites.
struct HeadsOf {
  const Context& context;
  std::string_view attention;
  RowPlaces places;
};

class WeightedValues {
 public:
  WeightedValues() = default;
  WeightedValues(const WeightedValues&) = delete;
  WeightedValues& operator=(const WeightedValues&) = delete;
  virtual ~WeightedValues() = default;

  /// The heads' outputs side by side, [Nq, heads * d_value]. `inputs`: everything but the matrices, the
  /// learned biases and the gates, which have a number for each head. Where inputs.halves(), k and v are null. Heads whose
  /// scores or weights somebody changes or watches take the composed path, the others the fused kernel. Throws UsageError
  /// where they cannot be changed.
  virtual Var apply(const HeadsOf& whose, Var q, Var k, Var v, const AttentionInputs& inputs,
                    const LearnedInputs& learned) const = 0;
  virtual void initialise(Random&) {}
  /// Calls the visitor with every parameter in a fixed order, "NAME.lambda", ...
  virtual void visit(const std::string& /*name*/, const ParameterVisitor&) {}
};

/// Shows one map of `maps`, those of `heads` (autograd/attention_maps.h), at the site `part` of `head`: the map is that
/// of the kernel's head `number`. Returns the maps that the model goes on with.
Var at_map(const HeadsOf& whose, SitePart part, int head, Var maps, const AttentionInputs& inputs, int number,
           HeadRange heads);

/// A head's output, made by the composed path: [Nq, d_value].
struct ComposedHead {
  int head = 0;
  Var output;
};
/// Calls who asks for scores and weights; returns the outputs, before gates, of those heads whose scores or
/// weights somebody changed or watches. `softmaxes`: how many a head has; `weights`: makes the head's weights of
/// those of its softmaxes.
std::vector<ComposedHead> composed_heads(const HeadsOf& whose, Var q, Var k, Var v,
                                         const AttentionInputs& inputs, const LearnedInputs& learned,
                                         int softmaxes = 1,
                                         const std::function<Var(Var softmaxes)>& weights = nullptr);

/// The heads' outputs [Nq, heads * d_value] times their gates, where there are gates.
Var gated(Tape& tape, Var heads, const LearnedInputs& learned, const AttentionInputs& inputs);

/// Throws UsageError while dropout is on: the weights of `kind` heads cannot be changed then.
void refuse_dropout(const HeadsOf& whose, const AttentionInputs& inputs, const char* kind);

/// Makes the weights that `geometry`, completed(), describes. `layer`: its place in the stack, from 0.
std::unique_ptr<WeightedValues> make_weighted_values(const HeadGeometry& geometry, int layer);

}  // namespace mh

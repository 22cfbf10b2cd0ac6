#include "multihead/nn/weighted_values.h"

#include "multihead/autograd/attention_maps.h"
#include "multihead/nn/geometries/weight_scheme.h"

namespace mh {

Var WeightedValues::maps(Tape& tape, Var q, Var k, const AttentionInputs& inputs,
                         const LearnedInputs& learned) const {
  return softmax_maps(tape, attention_scores(tape, q, k, inputs, learned), inputs);
}

std::unique_ptr<WeightedValues> make_weighted_values(const HeadGeometry& geometry, int layer) {
  return weight_scheme_of(geometry).make(geometry, layer);
}

}  // namespace mh

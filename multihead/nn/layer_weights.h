// LayerWeights: the description and the numbers of one attention, without the layer. Conversions of heads
// read and return these.
#pragma once

#include <map>
#include <string>

#include "multihead/nn/heads.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/linear_algebra.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct LayerWeights {
  int d_model = 0;
  HeadGeometry geometry;                 // completed()
  std::map<std::string, Tensor> values;  // "w_q", "b_o", ...: as MultiHeadAttention::visit calls them

  bool has(const std::string& name) const { return values.contains(name); }
};

LayerWeights weights_of(const MultiHeadAttention& layer, int d_model);
/// Copies the numbers into a layer. REQUIRES: the layer has these parameters, of these shapes.
void put_weights(const LayerWeights& weights, MultiHeadAttention& layer);

/// Returns head `head`'s part of a parameter, or all of it when heads share it.
DoubleMatrix own_part(const LayerWeights& layer, const std::string& name, int head);

/// The projection of one head, written as that of a canonical head: y = x weight + bias.
struct HeadMatrix {
  DoubleMatrix weight;  // [d_model, size]; rows of zeros for columns that the head does not read
  DoubleMatrix bias;    // [1, size]; zeros when there is none
};
/// Returns the queries, keys or values of query head `head` in this form. Not for a part that is not
/// projected, such as the keys of merged scores.
HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head);
/// Returns the rows of W^O of query head `head`, [d_value, d_model]; without W^O those of the identity, as heads then lie
/// side by side.
DoubleMatrix output_matrix(const LayerWeights& layer, int head);

}  // namespace mh

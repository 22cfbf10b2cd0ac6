#include "multihead/nn/layer_weights.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "multihead/nn/head_blocks.h"
#include "multihead/nn/head_scheme.h"

namespace mh {

LayerWeights weights_of(const MultiHeadAttention& layer, int d_model) {
  LayerWeights found{.d_model = d_model, .geometry = layer.geometry(), .values = {}};
  layer.visit("", [&](const std::string& name, const Parameter& p) {
    Weight copy = p.value;  // the layer's own goes on without float32 rows where it stays in a file
    found.values[name.substr(1)] = std::move(copy.tensor());
  });
  return found;
}

void put_weights(const LayerWeights& weights, MultiHeadAttention& layer) {
  layer.visit("", [&](const std::string& name, Parameter& p) {
    const Tensor& value = weights.values.at(name.substr(1));
    MH_ASSERT(value.rows() == p.value.rows() && value.cols() == p.value.cols());
    p.value = value;
    p.changed();
  });
}

DoubleMatrix own_part(const LayerWeights& layer, const std::string& name, int head) {
  const Tensor& value = layer.values.at(name);
  const std::optional<Block> block =
      head_block(layer.geometry, layer.d_model, {name, value.rows(), value.cols()}, head);
  return in_double(block ? block->of(value.view()) : value.view());
}

HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head) {
  return scheme_of(layer.geometry).head_matrix(layer, part, head);
}

DoubleMatrix output_matrix(const LayerWeights& layer, int head) {
  if (layer.has("w_o")) return own_part(layer, "w_o", head);
  DoubleMatrix rows(layer.geometry.d_value, layer.d_model);
  for (int64_t i = 0; i < rows.rows(); ++i) rows(i, int64_t{head} * rows.rows() + i) = 1;
  return rows;
}

}  // namespace mh

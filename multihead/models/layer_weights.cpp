#include "multihead/models/layer_weights.h"

#include "multihead/nn/head_blocks.h"

namespace mh {
namespace {

/// Head `head`'s part of a parameter, or all of it when heads share it.
DoubleMatrix own_part(const LayerWeights& layer, const std::string& name, int head) {
  const Tensor& value = layer.values.at(name);
  const std::optional<Block> block =
      head_block(layer.geometry, layer.d_model, name, value.rows(), value.cols(), head);
  return in_double(block ? block->of(value.view()) : value.view());
}

void multiply_columns(DoubleMatrix& a, const DoubleMatrix& by) {
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) a(i, j) *= by(0, j);
  }
}

}  // namespace

LayerWeights weights_of(const MultiHeadAttention& layer, int d_model) {
  LayerWeights found{.d_model = d_model, .geometry = layer.geometry(), .values = {}};
  layer.visit("", [&](const std::string& name, const Parameter& p) {
    found.values[name.substr(1)] = p.value.tensor();
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

HeadMatrix head_matrix(const LayerWeights& layer, char letter, int head) {
  const HeadGeometry& g = layer.geometry;
  MH_ASSERT(letter == 'v' || g.scores != Scores::kMerged);
  if (letter == 'k' && g.scores == Scores::kTied) letter = 'q';
  const std::string weight = std::string("w_") + letter, bias = std::string("b_") + letter;
  HeadMatrix found{own_part(layer, weight, head), {}};
  if (g.input.kind != HeadInput::Kind::kWholeRow) {
    const std::vector<int32_t> columns = columns_read(g, layer.d_model)[static_cast<size_t>(head)];
    DoubleMatrix whole(layer.d_model, found.weight.cols());
    for (size_t i = 0; i < columns.size(); ++i) {
      for (int64_t j = 0; j < whole.cols(); ++j)
        whole(columns[i], j) = found.weight(static_cast<int64_t>(i), j);
    }
    found.weight = whole;
  }
  if (const std::string before = std::string("w_before_") + letter; layer.has(before))
    found.weight = product(in_double(layer.values.at(before).view()).view(), found.weight.view());
  found.bias = layer.has(bias) ? own_part(layer, bias, head) : DoubleMatrix(1, found.weight.cols());
  if (letter == 'q' && g.scores == Scores::kCollaborative) {
    const DoubleMatrix mixing = own_part(layer, "mixing", head);
    multiply_columns(found.weight, mixing);
    multiply_columns(found.bias, mixing);
  }
  return found;
}

}  // namespace mh

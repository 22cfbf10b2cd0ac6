#include "multihead/nn/canonical_weights.h"

#include <algorithm>
#include <utility>

#include "multihead/nn/query_key_scheme.h"

namespace mh {
namespace {

/// W^O and its bias; without one the identity.
void put_output(const LayerWeights& from, LayerWeights& to) {
  to.geometry.output = HeadOutput::kProjection;
  if (from.has("w_o")) {
    to.values["w_o"] = from.values.at("w_o");
    if (from.has("b_o")) to.values["b_o"] = from.values.at("b_o");
    return;
  }
  Tensor identity(from.d_model, from.d_model);
  for (int64_t i = 0; i < identity.rows(); ++i) identity(i, i) = 1;
  to.values["w_o"] = std::move(identity);
  if (has_bias_of_output(to.geometry.biases)) to.values["b_o"] = Tensor(1, from.d_model);
}

}  // namespace

Tensor concatenated_columns(const std::vector<DoubleMatrix>& parts) {
  int64_t cols = 0;
  for (const DoubleMatrix& part : parts) cols += part.cols();
  Tensor all(parts[0].rows(), cols);
  int64_t at = 0;
  for (const DoubleMatrix& part : parts) {
    for (int64_t i = 0; i < part.rows(); ++i) {
      for (int64_t j = 0; j < part.cols(); ++j) all(i, at + j) = static_cast<float>(part(i, j));
    }
    at += part.cols();
  }
  return all;
}

std::vector<HeadMatrix> heads_of(const LayerWeights& layer, HeadPart part, int count) {
  std::vector<HeadMatrix> heads;
  for (int i = 0; i < count; ++i) heads.push_back(head_matrix(layer, part, i * layer.geometry.heads / count));
  return heads;
}

void put_projection(LayerWeights& to, HeadPart part, const std::vector<HeadMatrix>& heads) {
  std::vector<DoubleMatrix> weights, biases;
  for (const HeadMatrix& head : heads) {
    weights.push_back(head.weight);
    biases.push_back(head.bias);
  }
  to.values[weight_name(part)] = concatenated_columns(weights);
  if (has_bias_of_heads(to.geometry.biases)) to.values[bias_name(part)] = concatenated_columns(biases);
}

LayerWeights with_outputs_of(const LayerWeights& from, Scores scores) {
  LayerWeights to{.d_model = from.d_model, .geometry = from.geometry, .values = {}};
  to.geometry.input = {};
  to.geometry.scores = scores;
  clear_own_fields(to.geometry);
  to.geometry.initialisation = HeadGeometry().initialisation;  // it says nothing about numbers that are there
  put_projection(to, HeadPart::kValues, heads_of(from, HeadPart::kValues, from.geometry.value_heads));
  put_output(from, to);
  std::vector<std::string> kept = {"distance_keys", "distance_bias", "distance_vectors", "distance_norm.gain",
                                   "distance_norm.bias"};
  kept.insert(kept.end(), kDistanceProjections.begin(), kDistanceProjections.end());
  for (const char* name : query_key_scheme_of(from.geometry).parameters()) kept.emplace_back(name);
  for (const std::string& name : kept) {
    if (from.has(name)) to.values[name] = from.values.at(name);
  }
  return to;
}

DoubleMatrix with_bias(const HeadMatrix& head) {
  DoubleMatrix both(head.weight.rows() + 1, head.weight.cols());
  for (int64_t i = 0; i < head.weight.rows(); ++i)
    std::copy_n(head.weight.view().row(i), head.weight.cols(), both.view().row(i));
  std::copy_n(head.bias.data(), head.bias.cols(), both.view().row(head.weight.rows()));
  return both;
}

HeadMatrix bias_apart(const DoubleMatrix& both) {
  HeadMatrix apart{DoubleMatrix(both.rows() - 1, both.cols()), DoubleMatrix(1, both.cols())};
  for (int64_t i = 0; i + 1 < both.rows(); ++i)
    std::copy_n(both.view().row(i), both.cols(), apart.weight.view().row(i));
  std::copy_n(both.view().row(both.rows() - 1), both.cols(), apart.bias.data());
  return apart;
}

}  // namespace mh

// Computes the bias that positions add to the scores, as a matrix. (The kernel adds the same numbers
// without storing it.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/base/matrix_view.h"
#include "multihead/heads/reports/trace/layer_parameters.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// The queries [Tq, d_key] and keys [Tk, d_key] of one softmax of a layer.
struct SoftmaxQueries {
  int head = 0;         // the head that it belongs to
  int64_t softmax = 0;  // its number among all of the layer; a differential head has two
  std::string name;     // the name of the queries: "q_0"
  ConstMatrixView rows;
  std::string name_of_keys;
  ConstMatrixView keys;
  float scale = 1;
};

struct PositionBias {
  std::string formula;  // "-0.25 |distance|"
  Tensor value;         // [Tq, Tk]
};

/// Returns nothing when the layer's positions add nothing to scores. The last query has the position of the
/// last key.
std::optional<PositionBias> position_bias(const MultiHeadAttention& layer, const LayerParameters& parameters,
                                          const SoftmaxQueries& q);

}  // namespace mh

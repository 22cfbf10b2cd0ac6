// What positions add to scores, number by number: the plain form of what the kernel does on its way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/analysis/layer_parameters.h"
#include "multihead/base/matrix_view.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// One softmax of a layer, whose queries q [Tq, d_key] meet keys.
struct SoftmaxQueries {
  int head = 0;         // it belongs to
  int64_t softmax = 0;  // its number among all: twice as many as heads with differential weights
  std::string name;     // of the queries: "q_0"
  ConstMatrixView rows;
  float scale = 1;
};

struct PositionBias {
  std::string formula;  // "-0.25 |distance|"
  Tensor value;         // [Tq, Tk]
};

/// Empty when the layer's positions add nothing to scores. The last query stands where the last key stands.
std::optional<PositionBias> position_bias(const MultiHeadAttention& layer, const LayerParameters& parameters,
                                          const SoftmaxQueries& q, int64_t keys);

}  // namespace mh

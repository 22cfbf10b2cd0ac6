// Dense: x W + b, a layer of the heads that stand on an encoder.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/nn/stack_config.h"

namespace mh {

struct Dense {
  explicit Dense(int64_t d_model, Biases biases = Biases::kAll)
      : w(d_model, d_model),
        b(1, d_model),
        affine({&w}, biases == Biases::kAll ? std::vector<const Parameter*>{&b}
                                            : std::vector<const Parameter*>{}) {}
  Parameter w, b;  // [d_model, d_model], [1, d_model]
  Affine affine;
};

}  // namespace mh

// Dense: x W + b, a layer before or on top of an encoder.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/nn/stack_config.h"

namespace mh {

struct Dense {
  Dense(int64_t inputs, int64_t outputs, Biases biases = Biases::kAll)
      : w(inputs, outputs),
        b(1, outputs),
        affine({&w}, biases == Biases::kAll ? std::vector<const Parameter*>{&b}
                                            : std::vector<const Parameter*>{}) {}
  Parameter w, b;  // [inputs, outputs], [1, outputs]
  Affine affine;
};

}  // namespace mh

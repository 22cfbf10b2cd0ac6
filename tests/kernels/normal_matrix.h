// A matrix of random numbers.
#pragma once

#include "multihead/base/random.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// Normal numbers, a function of the seed.
inline Tensor normal_matrix(int64_t rows, int64_t cols, uint64_t seed) {
  Tensor t(rows, cols);
  Random random(seed);
  for (int64_t i = 0; i < t.size(); ++i) t.data()[i] = static_cast<float>(random.normal());
  return t;
}

}  // namespace mh

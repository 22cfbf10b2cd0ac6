// Matrices and parameters of normal random numbers.
#pragma once

#include <cstdint>

#include "multihead/autograd/parameter.h"
#include "multihead/base/random.h"
#include "multihead/tensor/tensor.h"

namespace mh::test {

template <class T = double>
BasicTensor<T> random_matrix(int64_t rows, int64_t cols, uint64_t seed) {
  BasicTensor<T> numbers(rows, cols);
  Random random(seed);
  for (int64_t i = 0; i < numbers.size(); ++i) numbers.data()[i] = static_cast<T>(random.normal());
  return numbers;
}

inline void randomise(Parameter& parameter, uint64_t seed, double spread = 1) {
  Random random(seed);
  for (int64_t i = 0; i < parameter.value.size(); ++i)
    parameter.value.data()[i] = static_cast<float>(spread * random.normal());
  parameter.changed();
}

}  // namespace mh::test

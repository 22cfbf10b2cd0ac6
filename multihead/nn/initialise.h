// Random initial values of parameters; a function of the generator's seed alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "multihead/autograd/parameter.h"
#include "multihead/base/random.h"

namespace mh {

/// Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
inline void fill_xavier(Parameter& parameter, Random& random, int64_t fan_in, int64_t fan_out) {
  const double bound = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  for (int64_t i = 0; i < parameter.value.size(); ++i) {
    parameter.value.data()[i] = static_cast<float>(bound * (2 * random.uniform() - 1));
  }
  parameter.changed();
}

/// Normal with mean 0 and this standard deviation.
inline void fill_normal(Parameter& parameter, Random& random, double deviation) {
  for (int64_t i = 0; i < parameter.value.size(); ++i) {
    parameter.value.data()[i] = static_cast<float>(deviation * random.normal());
  }
  parameter.changed();
}

/// Copies the numbers of a parameter to another one of the same shape.
inline void copy_values(const Parameter& from, Parameter& to) {
  MH_ASSERT(from.value.rows() == to.value.rows() && from.value.cols() == to.value.cols());
  std::copy_n(from.value.data(), from.value.size(), to.value.data());
  to.changed();
}

inline void fill_with(Parameter& parameter, float value) {
  parameter.value.fill(value);
  parameter.changed();
}

}  // namespace mh

// The scale with which numbers become integers from -most to most: x_k ~ scale a_k.
#pragma once

#include <limits>

namespace mh {

/// For numbers whose largest magnitude is `largest`. Below 2^-100 scale and inverse are 0; where it is not finite the scale is NaN
/// and the inverse 0, so that all integers are 0 and what is computed of them is NaN.
struct IntegerScale {
  float scale = 0;    // largest / most
  float inverse = 0;  // most / largest: what the numbers are multiplied with

  IntegerScale(float largest, float most) {
    if (!(largest <= std::numeric_limits<float>::max())) {
      scale = std::numeric_limits<float>::quiet_NaN();
    } else if (largest >= 0x1p-100f) {
      scale = largest / most;
      inverse = most / largest;
    }
  }
};

}  // namespace mh

// How exactly a model's products with its weights are computed (docs/precision.md). Attention, norms, softmax and sums over
// rows are float32 whatever this says.
#pragma once

#include "multihead/base/enum_names.h"

namespace mh {

enum class Precision {
  kSame,  // float32 arithmetic on the numbers that the file has
  kNear,  // inputs of 16 bits: bfloat16, or two times 8 bits
  kFast,  // inputs of 8 bits
};

inline constexpr EnumNames<Precision> kPrecisionNames = {
    {"same", Precision::kSame}, {"near", Precision::kNear}, {"fast", Precision::kFast}};

}  // namespace mh

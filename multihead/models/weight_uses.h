// What each parameter of a model is stored as, and what its products multiply with: `multihead info`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/autograd/parameter.h"

namespace mh {

class Model;

struct WeightUse {
  std::string name;
  int64_t rows = 0, cols = 0;
  StoredAs stored = {};
  std::optional<PackedForm> form = {};  // packed_form() of the parameter
};

/// Of every parameter, in the order of Model::visit(), if use_precision() set this precision. Packs nothing.
std::vector<WeightUse> weight_uses(const Model& model, PrecisionChoice precision);

}  // namespace mh

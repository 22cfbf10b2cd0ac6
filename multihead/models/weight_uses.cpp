#include "multihead/models/weight_uses.h"

#include "multihead/models/model.h"

namespace mh {

std::vector<WeightUse> weight_uses(const Model& model, PrecisionChoice precision) {
  std::vector<WeightUse> uses;
  model.visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    uses.push_back({.name = name,
                    .rows = parameter.value.rows(),
                    .cols = parameter.value.cols(),
                    .stored = parameter.stored_as,
                    .form = packed_form(parameter, precision)});
  }));
  return uses;
}

}  // namespace mh

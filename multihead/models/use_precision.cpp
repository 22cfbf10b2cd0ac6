#include "multihead/models/use_precision.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/models/model.h"

namespace mh {
namespace {

bool serves_some(const Model& model, PrecisionChoice precision) {
  bool found = false;
  model.visit(ConstParameterVisitor([&](const std::string&, const Parameter& parameter) {
    if (found || parameter.read_by == ReadBy::kHeads) return;
    const auto form = packed_form(parameter, precision);
    found = form && form->kernel == precision.kernel;
  }));
  return found;
}

}  // namespace

void use_precision(Model& model, PrecisionChoice precision) {
  if (!is_here(precision)) {
    const std::string name = precision_name(precision);
    throw UsageError(fmt::format("`precision`: expected {}, got {}", precisions_like(name), name));
  }
  if (precision.kernel && !serves_some(model, precision)) {
    throw UsageError(fmt::format("`precision`: {} multiplies with none of the model's weights; take {}",
                                 precision_name(precision), precision_name(precision.contract)));
  }
  model.visit([&](const std::string&, Parameter& parameter) {
    if (parameter.precision == precision) return;
    parameter.precision = precision;
    parameter.changed();
  });
}

}  // namespace mh

#include "multihead/models/use_precision.h"

#include "multihead/models/model.h"

namespace mh {

void use_precision(Model& model, Precision precision) {
  model.visit([&](const std::string&, Parameter& parameter) {
    if (parameter.precision == precision) return;
    parameter.precision = precision;
    parameter.changed();
  });
}

}  // namespace mh

// What `multihead info` says of products with weights: what each weight is stored as, and what every precision multiplies with on this
// machine (docs/precision.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "multihead/models/model.h"

namespace mh::cli {

/// The lines of the table.
std::string products_table(const Model& model);
/// "products", what is alike together, and "tensors", each of the model's.
void describe_products(const Model& model, nlohmann::ordered_json& json);

}  // namespace mh::cli

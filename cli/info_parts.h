// What `multihead info` says of every kind of model: heads, how weights are stored, attentions, files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "multihead/folders/model_folder.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/positions.h"
#include "multihead/nn/stack_config.h"

namespace mh::cli {

/// "d_model       512", a line of the table.
std::string info_row(std::string_view what, const std::string& value);
/// "2 layers of 3 heads (size 8), feed-forward 37"; where attentions differ: "of 3 or 4 heads".
std::string layers_text(const StackConfig& stack);
/// "learned, up to 512 tokens".
std::string positions_text(Positions positions, int32_t longest);
/// How weights are stored and multiplied, the attentions and files, as the end of the table.
std::string parts_table(const ModelFolder& folder);

/// How many heads each attention of the stack has; null where they differ: "attentions" tells each.
nlohmann::ordered_json heads_of_each(const StackConfig& stack);
/// The same as parts_table() in JSON: "weights", "products", "tensors", "attentions" and "files".
void describe_parts(const ModelFolder& folder, nlohmann::ordered_json& json);
/// The fields of config.json's head_geometry that are not as in canonical heads.
nlohmann::ordered_json unusual_heads(const HeadGeometry& geometry);
/// 0.3 rather than 0.30000001192.
double rounded(float rate);

}  // namespace mh::cli

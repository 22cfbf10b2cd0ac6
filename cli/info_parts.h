// What `multihead info` says of every kind of model: heads, attentions, files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "multihead/models/model_folder.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/positions.h"

namespace mh::cli {

/// "d_model       512", a line of the table.
std::string info_row(std::string_view what, const std::string& value);
/// "2 layers of 3 heads (size 8), feed-forward 37".
std::string layers_text(HeadGeometry geometry, int32_t d_model, int32_t layers, int32_t heads, int32_t d_ff);
/// "learned, up to 512 tokens".
std::string positions_text(Positions positions, int32_t longest);
/// The attentions and files, as the end of the table.
std::string parts_table(const ModelFolder& folder);

/// The same in JSON: "attentions" and "files".
void describe_parts(const ModelFolder& folder, nlohmann::ordered_json& json);
/// The fields of config.json's head_geometry that are not as in canonical heads.
nlohmann::ordered_json unusual_heads(const HeadGeometry& geometry);
/// 0.3 rather than 0.30000001192.
double rounded(float rate);

}  // namespace mh::cli

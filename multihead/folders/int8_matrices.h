// Matrices of a folder as integers of 8 bits with a scale for each row, or for each group of a row's numbers, as the package compressed-tensors stores them
// ("int-quantized"), with which Transformers opens the folder: in place of NAME.weight [out, in] there are
//
//   NAME.weight         I8 [out, in]   q
//   NAME.weight_scale   [out, 1]       s, so that the number (i, j) is q_ij s_i
//                       [out, in / G]  where groups have G numbers each, q_ij s_i(j div G)
//
// and config.json says so in "quantization_config". It shows JSON to sources of folders/ alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/tensor_files.h"

namespace mh {

/// The key of config.json.
inline constexpr const char* kQuantisation = "quantization_config";
/// How the name of a matrix's scales ends, behind its own.
inline constexpr std::string_view kScaleEnding = "_scale";

/// Whether a config.json says that matrices are such integers. Throws FormatError that names the method on weights that are
/// quantised in another way.
bool says_int8(const nlohmann::json& config, std::string_view name);

/// The config.json of a folder whose tensors of these names are integers. Targets are the modules by their names, which a model
/// inside of a larger one has behind another beginning; prefixes: those that it may not have (FolderPlan::prefixes). group_size: how
/// many numbers have a scale; none: a row.
std::string with_int8_config(const std::string& config, std::span<const std::string> tensors,
                             std::span<const std::string> prefixes,
                             std::optional<int64_t> group_size = std::nullopt);

/// Returns the tensors with such pairs made matrices of numbers, which keep 8 bits a number in memory when the scales are float16
/// and rows or groups a multiple of 32 numbers; otherwise a remark says that they take 4 bytes. Throws FormatError on scales of another
/// shape.
TensorFiles with_int8_matrices(const TensorFiles& files);

/// Writes a row or group as integers, q_j = x_j / s rounded, and returns s: the smallest number of 8 significant bits, and of those that
/// float16 has, which is no less than max |x| / 127. So float16, bfloat16 and float32 hold it exactly. Of zeros alone it is 1.
/// Infinite where float16 has no such number. REQUIRES: the numbers are finite.
float quantise_int8_row(std::span<const float> numbers, std::span<std::byte> to);

}  // namespace mh

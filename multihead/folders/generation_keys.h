// What is known here about the keys of generation_config.json, Hugging Face's GenerationConfig.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "multihead/models/model.h"

namespace mh {

/// The keys of a GenerationConfig, but for ids of tokens, which config.json has as well.
std::span<const std::string_view> generation_key_names();

/// Returns a line for the user who generates or translates, about the keys of a generation_config.json with which
/// transformers would do it in another way, and which are not used here; empty when there are none. Throws FormatError that
/// starts with `name`.
std::string generation_remark(std::string_view json, std::string_view name, const ModelFacts& facts);

enum class TokenIds { kLeftOut, kToo };
/// Returns those keys of a config.json that are a GenerationConfig's, as JSON: transformers takes them where there is no
/// generation_config.json. kToo: with eos_token_id and the like. Throws FormatError that starts with `name`.
std::string generation_part(std::string_view config, std::string_view name,
                            TokenIds ids = TokenIds::kLeftOut);

}  // namespace mh

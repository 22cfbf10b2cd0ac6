// What is known here about the keys of generation_config.json, Hugging Face's GenerationConfig.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mh {

/// The keys of a GenerationConfig, but for ids of tokens, which config.json has as well.
std::span<const std::string_view> generation_key_names();

/// Returns a line for the user who generates or translates, about the keys of a generation_config.json with which
/// transformers would do it in another way, and which are not used here; empty when there are none. end: the model's
/// eos_token_id, -1 if it has none. translates: whether the model is an encoder-decoder. Throws FormatError that starts
/// with `name`.
std::string generation_remark(std::string_view json, std::string_view name, int32_t end, bool translates);

}  // namespace mh

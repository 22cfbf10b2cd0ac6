// What a generation_config.json says of the search for a text, Hugging Face's GenerationConfig.
#pragma once

#include <string>
#include <string_view>

#include "multihead/folders/model_folder.h"
#include "multihead/models/model.h"

namespace mh {

struct EncoderDecoderConfig;

/// Reads the text of a generation_config.json for a model of these facts. Throws FormatError that starts with `name`.
GenerationConfig read_generation_config(std::string_view json, std::string_view name,
                                        const ModelFacts& facts);
/// Returns the text of a generation_config.json, or of the keys of a config.json, with these alignment_heads; all else stays as it is.
/// Throws FormatError that starts with `name` on text that is no JSON object.
std::string with_alignment_heads(std::string_view json, std::string_view name, const AligningHeads& heads);
/// The same without them.
std::string without_alignment_heads(std::string_view json, std::string_view name);
/// Returns the text of a generation_config.json with which transformers searches as we do with these options. Keys that are
/// nothing get the usual value of SearchOptions; the padding token is never generated.
std::string write_generation_config(const EncoderDecoderConfig& config, const GenerationConfig& search);

}  // namespace mh

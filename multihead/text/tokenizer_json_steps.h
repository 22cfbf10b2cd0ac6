// Reads the steps of the pipeline in tokenizer.json, with their settings.
#pragma once

#include <vector>

#include "multihead/text/json_node.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Appends the step, or the steps of a Sequence in order. Throws FormatError on a type that is not
/// supported, naming those that are.
void read_steps(const JsonNode& node, std::vector<NormalizerStep>& steps);
void read_steps(const JsonNode& node, std::vector<PreTokenizerStep>& steps);
void read_steps(const JsonNode& node, std::vector<PostProcessorStep>& steps);
void read_steps(const JsonNode& node, std::vector<DecoderStep>& steps);

}  // namespace mh

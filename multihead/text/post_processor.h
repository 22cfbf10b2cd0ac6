// Post-processors: put the tokens of a template around the text, and trim offsets.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/text/tokenizer.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Applies the steps in order.
void post_process(const std::vector<PostProcessorStep>& steps, bool add_special_tokens, Encoding& encoding);
/// The same for the ids alone.
void post_process_ids(const std::vector<PostProcessorStep>& steps, std::vector<int32_t>& ids);

}  // namespace mh

// Post-processors: put the tokens of a template around the text, and trim offsets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/text/tokenizer.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Applies the steps in order.
void post_process(const std::vector<PostProcessorStep>& steps, bool add_special_tokens, Encoding& encoding);
/// The same for the ids alone.
void post_process_ids(const std::vector<PostProcessorStep>& steps, std::vector<int32_t>& ids);

/// The step whose template puts two texts together: the only one that has templates, if its template for a pair
/// has both texts once and special tokens that it knows. Null when there is none.
const PostProcessorStep* pair_template(const std::vector<PostProcessorStep>& steps);
TokenPair join_pair(const PostProcessorStep& step, std::span<const int32_t> first,
                    std::span<const int32_t> second);

}  // namespace mh

// The header of a page as JSON: tokens, maps and walks of texts. Only the sources of this room include it.
#pragma once

#include <optional>
#include <string>

#include "multihead/heads/reports/json_parts.h"
#include "multihead/heads/reports/page/page_maps.h"
#include "multihead/heads/reports/page/page_numbers.h"
#include "multihead/heads/reports/trace/trace.h"
#include "multihead/heads/sites/observe_text.h"

namespace mh {

HeadsJson json_of(const PageNumbers::Block& block);
HeadsJson json_of(const PageMaps& maps);
/// Tokens with their places in `text`; special: of those that have none (end of a translation).
HeadsJson json_of_tokens(const ObservedTokens& tokens, const std::string& text);
/// The name of an attention, its kind, layer, heads and sizes.
HeadsJson json_of_attention(const Model& model, const Model::Attention& attention);
HeadsJson json_of_walk(const AttentionTrace& trace, PageNumbers& numbers);

}  // namespace mh

// Decoders: turn the pieces of a tokenizer back into text.
#pragma once

#include <string>
#include <vector>

#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Returns the text of the pieces; without steps they are joined by spaces.
std::string decode_pieces(const std::vector<DecoderStep>& steps, std::vector<std::string> pieces);

}  // namespace mh

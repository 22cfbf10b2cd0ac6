// SentencePiece's normalizer: the longest matches of a character map, and spaces.
#pragma once

#include "multihead/text/aligned_text.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

void apply_sentence_piece(const NormalizerStep& step, AlignedText& text);

}  // namespace mh

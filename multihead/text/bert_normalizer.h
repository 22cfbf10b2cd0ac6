// BERT's normalizer: clean text, ideographs set apart, accents stripped, lower case; each can be switched
// off.
#pragma once

#include "multihead/text/aligned_text.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

void apply_bert(const NormalizerStep& step, AlignedText& text);

}  // namespace mh

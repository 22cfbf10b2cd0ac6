// Normalizers: rewrite a text before it is cut into words.
#pragma once

#include <vector>

#include "multihead/text/aligned_text.h"
#include "multihead/text/tokenizer_parts.h"
#include "multihead/text/unicode.h"

namespace mh {

/// Applies the normalizers to a text, in order.
void normalize(const std::vector<NormalizerStep>& steps, AlignedText& text);

void apply_normal_form(AlignedText& text, NormalForm form);
void apply_lower_case(AlignedText& text);

}  // namespace mh

// Normalizers with a precompiled character map: Hugging Face's Precompiled, and Nmt, which it replaces.
#pragma once

#include <string_view>

#include "multihead/text/aligned_text.h"

namespace mh {

/// Rewrites each grapheme of less than 6 bytes whose start the map knows by that start's replacement, which
/// drops the rest, and otherwise each character. (So Hugging Face does it; SentencePiece itself takes the
/// longest match.)
void apply_precompiled(std::string_view character_map, AlignedText& text);

/// Removes control characters; other spaces, U+2581, U+FEFF, U+FFFD and directions become ' '.
void apply_nmt(AlignedText& text);

}  // namespace mh

// AlignedText: a text that a tokenizer has rewritten, with the original characters that each byte comes
// from. Offsets of tokens are made from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/text/tokenizer_parts.h"
#include "multihead/text/unicode.h"

namespace mh {

/// Characters [first, second) of the original text.
using CharacterRange = std::pair<int32_t, int32_t>;

/// UTF-8 text and, when `tracked`, the origin of each byte.
struct AlignedText {
  std::string text;
  std::vector<CharacterRange> origin;  ///< one for each byte, or empty when not tracked
  bool tracked = false;

  static AlignedText of(std::string_view text, bool tracked);

  /// Appends bytes that all come from the same characters.
  void append(std::string_view bytes, CharacterRange from);
  /// Appends bytes [begin, end) of `other` with their origins.
  void append(const AlignedText& other, size_t begin, size_t end);
  AlignedText slice(size_t begin, size_t end) const;
  /// The text with its characters rewritten. One that replaces takes the origin of the one it replaces, an
  /// inserted one that of the character before it; removed ones leave nothing (so "e" + accent -> "é" comes
  /// from the "e" alone, as in Hugging Face).
  AlignedText rewritten(const std::vector<Rewritten>& characters) const;
  /// Origin of byte `at`; {0, 0} when not tracked.
  CharacterRange from(size_t at) const { return tracked ? origin[at] : CharacterRange{0, 0}; }
};

/// Part of a text: bytes [begin, end).
struct Part {
  size_t begin;
  size_t end;
  bool matches = false;
};
/// Cuts text into parts that match the pattern and parts that do not.
std::vector<Part> parts_by_pattern(std::string_view text, const Pattern& pattern);

}  // namespace mh

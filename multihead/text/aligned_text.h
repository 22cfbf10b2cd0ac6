// Text on its way through a tokenizer that still knows which characters of the original each byte comes from.
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

/// UTF-8 and, when tracked, the origin of each of its bytes.
struct AlignedText {
  std::string text;
  std::vector<CharacterRange> origin;  ///< one for each byte, or empty when not tracked
  bool tracked = false;

  static AlignedText of(std::string_view text, bool tracked);

  /// Adds bytes that come from one place.
  void append(std::string_view bytes, CharacterRange from);
  /// Adds bytes [begin, end) of `other` with their origins.
  void append(const AlignedText& other, size_t begin, size_t end);
  AlignedText slice(size_t begin, size_t end) const;
  /// Origin of byte `at`; {0, 0} when not tracked.
  CharacterRange from(size_t at) const { return tracked ? origin[at] : CharacterRange{0, 0}; }
};

/// Runs the steps over a text, in order.
void normalize(const std::vector<NormalizerStep>& steps, AlignedText& text);

/// Part of a text: bytes [begin, end).
struct Part {
  size_t begin;
  size_t end;
  bool matches = false;
};
/// Cuts text into parts that match the pattern and parts that do not.
std::vector<Part> parts_by_pattern(std::string_view text, const Pattern& pattern);

}  // namespace mh

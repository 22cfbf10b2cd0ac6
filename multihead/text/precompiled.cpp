#include "multihead/text/precompiled.h"

#include <utf8proc.h>

#include <algorithm>

#include "multihead/text/character_map.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

/// Where the grapheme that starts at `at` ends (UAX 29).
size_t grapheme_end(std::string_view text, size_t at) {
  utf8proc_int32_t state = 0;
  auto before = static_cast<utf8proc_int32_t>(next_character(text, at));
  while (at < text.size()) {
    size_t next = at;
    const auto c = static_cast<utf8proc_int32_t>(next_character(text, next));
    if (utf8proc_grapheme_break_stateful(before, c, &state)) break;
    before = c;
    at = next;
  }
  return at;
}

int count_characters(std::string_view text) {
  return static_cast<int>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Character for character; more new ones are inserted behind. Fewer: the last character before takes the
/// rest away, and where there is none, nobody does (so that origins are wrong, as in Hugging Face).
void append_replacement(std::string_view old, std::string_view replacement, std::vector<Rewritten>& out) {
  const int replaced = count_characters(old);
  int count = 0;
  for (size_t at = 0; at < replacement.size(); ++count) {
    out.push_back({next_character(replacement, at), count < replaced ? 0 : 1});
  }
  if (count < replaced && !out.empty()) out.back().change -= replaced - count;
}

}  // namespace

void apply_precompiled(std::string_view character_map, AlignedText& text) {
  const CharacterMap map(character_map);
  const std::string_view old = text.text;
  std::vector<Rewritten> characters;
  characters.reserve(old.size());
  bool any = false;
  const auto rewrite = [&](std::string_view part) {
    const auto match = map.shortest(part);
    if (match.length == 0) return false;
    append_replacement(part, match.replacement, characters);
    return any = true;
  };
  for (size_t at = 0; at < old.size();) {
    const size_t end = grapheme_end(old, at);
    constexpr size_t kShort = 6;
    if (end - at < kShort && rewrite(old.substr(at, end - at))) {
      at = end;
      continue;
    }
    while (at < end) {
      const size_t begin = at;
      const char32_t c = next_character(old, at);
      if (!rewrite(old.substr(begin, at - begin))) characters.push_back({c, 0});
    }
  }
  if (any) text = text.rewritten(characters);
}

void apply_nmt(AlignedText& text) {
  AlignedText result;
  result.tracked = text.tracked;
  for (size_t at = 0; at < text.text.size();) {
    const size_t begin = at;
    const char32_t c = next_character(text.text, at);
    const bool control =
        (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    const bool space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    if (space) {
      result.append(" ", text.from(begin));
    } else if (!control) {
      result.append(text, begin, at);
    }
  }
  text = std::move(result);
}

}  // namespace mh

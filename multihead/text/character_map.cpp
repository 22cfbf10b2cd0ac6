#include "multihead/text/character_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"

namespace mh {
namespace {

constexpr size_t kUnit = sizeof(uint32_t);
constexpr size_t kLongestRule = 256;  // bytes; real rules have some 30, and a damaged trie may run in circles

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = kUnit; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}
bool inside_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

void CharacterMap::check(std::string_view bytes) {
  if (bytes.empty()) return;
  const size_t size = bytes.size() < kUnit ? 0 : little_endian(bytes, 0);
  if (size < kUnit || size % kUnit != 0 || size > bytes.size() - kUnit) {
    throw FormatError(
        fmt::format("the precompiled character map of {} bytes has no trie of {} bytes", bytes.size(), size));
  }
  const std::string_view replacements = bytes.substr(kUnit + size);
  if (first_invalid_utf8(replacements) != std::string_view::npos) {
    throw FormatError(fmt::format("the precompiled character map is not UTF-8 at byte {}",
                                  kUnit + size + first_invalid_utf8(replacements)));
  }
}

CharacterMap::CharacterMap(std::string_view bytes) {
  if (bytes.empty()) return;
  trie_ = bytes.substr(kUnit, little_endian(bytes, 0));
  replacements_ = bytes.substr(kUnit + trie_.size());
}

uint32_t CharacterMap::unit(size_t at) const {
  return at < trie_.size() / kUnit ? little_endian(trie_, at * kUnit)
                                   : 0;  // 0 matches no byte and has no leaf
}

CharacterMap::Match CharacterMap::find(std::string_view text, bool shortest) const {
  const auto offset = [](uint32_t u) { return static_cast<size_t>(u >> 10) << ((u & 1u << 9) >> 6); };
  Match best;
  size_t at = offset(unit(0));
  for (size_t i = 0; i < std::min(text.size(), kLongestRule) && !trie_.empty(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    at ^= c;
    const uint32_t here = unit(at);
    if (c == 0 || (here & (1u << 31 | 0xFF)) != c) break;
    at ^= offset(here);
    const bool leaf = (here >> 8 & 1) != 0;
    if (!leaf || (i + 1 < text.size() && inside_character(text[i + 1]))) continue;
    const size_t value = unit(at) & ~(1u << 31);
    if (value >= replacements_.size() || inside_character(replacements_[value])) continue;
    const size_t end = std::min(replacements_.find('\0', value), replacements_.size());
    best = {i + 1, replacements_.substr(value, end - value)};
    if (shortest) break;
  }
  return best;
}

}  // namespace mh

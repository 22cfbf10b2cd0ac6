#include "multihead/text/byte_level.h"

namespace mh {
namespace {

/// Byte -> character: printable Latin-1 stands for itself, the rest for U+0100, U+0101, … in order.
std::array<char32_t, 256> byte_characters() {
  std::array<char32_t, 256> table;
  char32_t next = 256;
  for (char32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE);
    table[b] = printable ? b : next++;
  }
  return table;
}

}  // namespace

const std::array<std::string, 256>& byte_level_alphabet() {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> made;
    const auto characters = byte_characters();
    for (size_t b = 0; b < 256; ++b) append_utf8(made[b], characters[b]);
    return made;
  }();
  return table;
}

int byte_of_character(char32_t c) {
  static const std::array<int16_t, 512> table = [] {
    std::array<int16_t, 512> made;
    made.fill(-1);
    const auto characters = byte_characters();
    for (size_t b = 0; b < 256; ++b) made[characters[b]] = static_cast<int16_t>(b);
    return made;
  }();
  return c < table.size() ? table[c] : -1;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::vector<Part> gpt2_words(std::string_view text) {
  enum class Kind { letter, number, space, other };
  const auto kind_at = [&](size_t at, size_t& next) {
    next = at;
    const char32_t c = next_character(text, next);
    if (c < 0x80) {
      if ((c | 32) >= 'a' && (c | 32) <= 'z') return Kind::letter;
      if (c >= '0' && c <= '9') return Kind::number;
      return is_whitespace(c) ? Kind::space : Kind::other;
    }
    return is_whitespace(c) ? Kind::space
           : is_letter(c)   ? Kind::letter
           : is_number(c)   ? Kind::number
                            : Kind::other;
  };
  const auto contraction = [&](size_t at) -> size_t {
    for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      if (text.substr(at).starts_with(ending)) return ending.size();
    }
    return 0;
  };
  std::vector<Part> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    size_t next = 0;
    if (const size_t length = text[at] == '\'' ? contraction(at) : 0) {
      at += length;
    } else {
      Kind kind = kind_at(at, next);
      if (text[at] == ' ' && next < text.size()) {
        size_t behind = 0;
        if (const Kind follower = kind_at(next, behind); follower != Kind::space) {
          kind = follower;
          next = behind;
        }
      }
      at = next;
      size_t last = begin;  // where the run's last character starts
      for (; at < text.size() && kind_at(at, next) == kind; at = next) last = at;
      // Whitespace before a word leaves its last character to that word (or alone, when it is not a space).
      if (kind == Kind::space && at < text.size() && last > begin) at = last;
    }
    parts.push_back({begin, at, true});
  }
  return parts;
}

}  // namespace mh

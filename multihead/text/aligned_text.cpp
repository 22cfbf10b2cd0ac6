#include "multihead/text/aligned_text.h"

#include "multihead/text/character_classes.h"
#include "multihead/text/word_rules.h"

namespace mh {
namespace {

/// Bytes of the numbers that start at `at`, up to `most` of them.
size_t numbers_length(std::string_view text, size_t at, int most) {
  size_t end = at;
  for (int i = 0; i < most && end < text.size(); ++i) {
    size_t next = end;
    const char32_t c = next_character(text, next);
    if (!is_number(c) && !is_newer_number(c)) break;
    end = next;
  }
  return end - at;
}

/// The run of whitespace that starts at `at`.
struct Whitespace {
  size_t bytes = 0;
  int characters = 0;
};
Whitespace whitespace_length(std::string_view text, size_t at) {
  Whitespace run;
  while (at + run.bytes < text.size()) {
    size_t next = at + run.bytes;
    if (!is_whitespace(next_character(text, next))) break;
    run = {next - at, run.characters + 1};
  }
  return run;
}

/// Bytes of the longest match of a run that starts at `at`; 0: none.
size_t match_length(std::string_view text, size_t at, const Pattern& pattern) {
  size_t end = at;
  switch (pattern.kind) {
    case Pattern::Kind::kLiteral:
      return text.substr(at).starts_with(pattern.literal) ? pattern.literal.size() : 0;
    case Pattern::Kind::kSpaceRun:
      while (end < text.size() && text[end] == ' ') ++end;
      return end - at >= 2 ? end - at : 0;
    case Pattern::Kind::kWhitespaceRun:
      return whitespace_length(text, at).bytes;
    case Pattern::Kind::kSpacesBreaks: {
      const Whitespace run = whitespace_length(text, at);
      const bool is_break = run.characters == 1 && (text[at] == '\n' || text[at] == '\r' || text[at] == '\t');
      return run.characters >= 2 || is_break ? run.bytes : 0;
    }
    case Pattern::Kind::kNumber:
      return numbers_length(text, at, 1);
    case Pattern::Kind::kThreeNumbers:
      return numbers_length(text, at, 3);
    case Pattern::Kind::kWords:
      break;  // parts_by_pattern() asks words_by_rule()
  }
  return 0;
}

}  // namespace

AlignedText AlignedText::of(std::string_view text, bool tracked) {
  AlignedText result;
  result.text = text;
  result.tracked = tracked;
  if (tracked) {
    result.origin.reserve(text.size());
    int32_t character = -1;
    for (const char c : text) {
      if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++character;
      result.origin.emplace_back(character, character + 1);
    }
  }
  return result;
}

void AlignedText::append(std::string_view bytes, CharacterRange range) {
  text += bytes;
  if (tracked) origin.insert(origin.end(), bytes.size(), range);
}

void AlignedText::append(const AlignedText& other, size_t begin, size_t end) {
  text.append(other.text, begin, end - begin);
  if (tracked) {
    const auto first = other.origin.begin();
    origin.insert(origin.end(), first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end));
  }
}

AlignedText AlignedText::slice(size_t begin, size_t end) const {
  AlignedText result;
  result.tracked = tracked;
  result.append(*this, begin, end);
  return result;
}

AlignedText AlignedText::rewritten(const std::vector<Rewritten>& characters) const {
  AlignedText result;
  result.tracked = tracked;
  result.text.reserve(text.size());
  size_t at = 0;  // next byte of the old text not yet replaced
  std::string bytes;
  for (const auto& [character, change] : characters) {
    bytes.clear();
    append_utf8(bytes, character);
    if (!tracked) {
      result.text += bytes;
      continue;
    }
    CharacterRange from{0, 0};
    if (change > 0) {
      if (at > 0) from = origin[at - 1];
    } else {
      if (at < text.size()) from = origin[at];
      for (int i = change; i <= 0 && at < text.size(); ++i) at += utf8_length(text[at]);
    }
    result.append(bytes, from);
  }
  return result;
}

std::vector<Part> parts_by_pattern(std::string_view text, const Pattern& pattern) {
  if (pattern.kind == Pattern::Kind::kWords) return words_by_rule(text, pattern.words);
  std::vector<Part> parts;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    if (pattern.kind == Pattern::Kind::kLiteral) {
      at = text.find(pattern.literal, at);
      if (at == std::string_view::npos) break;
    }
    const size_t length = match_length(text, at, pattern);
    if (length == 0) {
      at += utf8_length(text[at]);
      continue;
    }
    if (begin < at) parts.push_back({begin, at, false});
    parts.push_back({at, at + length, true});
    begin = at += length;
  }
  if (begin < text.size()) parts.push_back({begin, text.size(), false});
  return parts;
}

}  // namespace mh

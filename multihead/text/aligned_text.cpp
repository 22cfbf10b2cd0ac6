#include "multihead/text/aligned_text.h"

namespace mh {
namespace {

/// The text rewritten: a character that replaces takes the origin of the one it replaces, an inserted one
/// that of the character before it; removed ones leave nothing (so "e" + accent -> "é" comes from the "e"
/// alone, as in HF).
AlignedText rewritten(const AlignedText& old, const std::vector<Rewritten>& characters) {
  AlignedText result;
  result.tracked = old.tracked;
  result.text.reserve(old.text.size());
  size_t at = 0;  // next byte of the old text not yet replaced
  std::string bytes;
  for (const auto& [character, change] : characters) {
    bytes.clear();
    append_utf8(bytes, character);
    if (!old.tracked) {
      result.text += bytes;
      continue;
    }
    CharacterRange from{0, 0};
    if (change > 0) {
      if (at > 0) from = old.origin[at - 1];
    } else {
      if (at < old.text.size()) from = old.origin[at];
      for (int i = change; i <= 0 && at < old.text.size(); ++i) at += utf8_length(old.text[at]);
    }
    result.append(bytes, from);
  }
  return result;
}

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

void apply_normal_form(AlignedText& text, NormalForm form) {
  if (!is_ascii(text.text)) text = rewritten(text, rewrite_normal_form(text.text, form));
}

void apply_lower_case(AlignedText& text) {
  if (is_ascii(text.text)) {
    for (char& c : text.text) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    }
    return;
  }
  std::vector<Rewritten> characters;
  std::u32string lower;
  for (size_t at = 0; at < text.text.size();) {
    lower.clear();
    append_lower_case(lower, next_character(text.text, at));
    for (size_t i = 0; i < lower.size(); ++i) characters.push_back({lower[i], i > 0 ? 1 : 0});
  }
  text = rewritten(text, characters);
}

void apply_strip(AlignedText& text, bool left, bool right) {
  size_t begin = 0;
  size_t end = text.text.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!is_whitespace(next_character(text.text, next))) break;
    begin = next;
  }
  while (right && begin < end) {
    size_t last = end - 1;
    while ((static_cast<unsigned char>(text.text[last]) & 0xC0) == 0x80) --last;
    size_t next = last;
    if (!is_whitespace(next_character(text.text, next))) break;
    end = last;
  }
  if (begin > 0 || end < text.text.size()) text = text.slice(begin, end);
}

void apply_strip_accents(AlignedText& text) {
  AlignedText kept;
  kept.tracked = text.tracked;
  for (size_t at = 0; at < text.text.size();) {
    const size_t begin = at;
    if (!is_mark(next_character(text.text, at))) kept.append(text, begin, at);
  }
  text = std::move(kept);
}

void apply_replace(AlignedText& text, const Pattern& pattern, const std::string& content) {
  const auto parts = parts_by_pattern(text.text, pattern);
  bool any = false;
  for (const Part& part : parts) {
    any = any ||
          (part.matches && std::string_view(text.text).substr(part.begin, part.end - part.begin) != content);
  }
  if (!any) return;
  AlignedText result;
  result.tracked = text.tracked;
  for (const Part& part : parts) {
    if (part.matches) {
      result.append(content, text.from(part.end - 1));
    } else {
      result.append(text, part.begin, part.end);
    }
  }
  text = std::move(result);
}

void apply_prepend(AlignedText& text, const std::string& content) {
  if (text.text.empty()) return;
  AlignedText result;
  result.tracked = text.tracked;
  result.append(content, text.from(0));
  result.append(text, 0, text.text.size());
  text = std::move(result);
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
      while (end < text.size()) {
        size_t next = end;
        if (!is_whitespace(next_character(text, next))) break;
        end = next;
      }
      return end - at;
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

std::vector<Part> parts_by_pattern(std::string_view text, const Pattern& pattern) {
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

void normalize(const std::vector<NormalizerStep>& steps, AlignedText& text) {
  using Kind = NormalizerStep::Kind;
  for (const NormalizerStep& step : steps) {
    switch (step.kind) {
      case Kind::kNfc:
        apply_normal_form(text, NormalForm::kNfc);
        break;
      case Kind::kNfkc:
        apply_normal_form(text, NormalForm::kNfkc);
        break;
      case Kind::kNfd:
        apply_normal_form(text, NormalForm::kNfd);
        break;
      case Kind::kNfkd:
        apply_normal_form(text, NormalForm::kNfkd);
        break;
      case Kind::kLowercase:
        apply_lower_case(text);
        break;
      case Kind::kStrip:
        apply_strip(text, step.left, step.right);
        break;
      case Kind::kStripAccents:
        apply_strip_accents(text);
        break;
      case Kind::kPrepend:
        apply_prepend(text, step.content);
        break;
      case Kind::kReplace:
        apply_replace(text, step.pattern, step.content);
        break;
    }
  }
}

}  // namespace mh

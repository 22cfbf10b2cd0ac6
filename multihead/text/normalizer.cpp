#include "multihead/text/normalizer.h"

#include "multihead/text/bert_normalizer.h"
#include "multihead/text/character_classes.h"
#include "multihead/text/precompiled.h"
#include "multihead/text/sentence_piece_normalizer.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

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
    if (!is_combining_mark(next_character(text.text, at))) kept.append(text, begin, at);
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

}  // namespace

void apply_normal_form(AlignedText& text, NormalForm form) {
  if (!is_ascii(text.text)) text = text.rewritten(rewrite_normal_form(text.text, form));
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
  text = text.rewritten(characters);
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
      case Kind::kBert:
        apply_bert(step, text);
        break;
      case Kind::kNmt:
        apply_nmt(text);
        break;
      case Kind::kPrecompiled:
        apply_precompiled(step.character_map, text);
        break;
      case Kind::kSentencePiece:
        apply_sentence_piece(step, text);
        break;
    }
  }
}

}  // namespace mh

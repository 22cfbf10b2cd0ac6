#include "multihead/text/bert_normalizer.h"

#include "multihead/text/character_classes.h"
#include "multihead/text/normalizer.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

/// Hands each character to `rewrite`, which appends to the new text what becomes of bytes [begin, end).
template <class Rewrite>
void rewrite_characters(AlignedText& text, Rewrite&& rewrite) {
  AlignedText result;
  result.tracked = text.tracked;
  result.text.reserve(text.text.size());
  for (size_t at = 0; at < text.text.size();) {
    const size_t begin = at;
    const char32_t c = next_character(text.text, at);
    rewrite(c, begin, at, result);
  }
  text = std::move(result);
}

void clean(AlignedText& text) {
  rewrite_characters(text, [&](char32_t c, size_t begin, size_t end, AlignedText& out) {
    if (c == '\t' || c == '\n' || c == '\r' || (is_whitespace(c) && !is_bert_control(c))) {
      out.append(" ", text.from(begin));
    } else if (!is_bert_control(c)) {
      out.append(text, begin, end);
    }
  });
}

void set_ideographs_apart(AlignedText& text) {
  rewrite_characters(text, [&](char32_t c, size_t begin, size_t end, AlignedText& out) {
    const bool apart = is_bert_ideograph(c);
    if (apart) out.append(" ", text.from(begin));
    out.append(text, begin, end);
    if (apart) out.append(" ", text.from(begin));
  });
}

void strip_accents(AlignedText& text) {
  apply_normal_form(text, NormalForm::kNfd);
  rewrite_characters(text, [&](char32_t c, size_t begin, size_t end, AlignedText& out) {
    if (!is_bert_mark(c)) out.append(text, begin, end);
  });
}

}  // namespace

void apply_bert(const NormalizerStep& step, AlignedText& text) {
  if (step.clean_text) clean(text);
  const bool ascii = is_ascii(text.text);  // then there are neither ideographs nor accents
  if (step.handle_chinese_chars && !ascii) set_ideographs_apart(text);
  if (step.strip_accents.value_or(step.lowercase) && !ascii) strip_accents(text);
  if (step.lowercase) apply_lower_case(text);
}

}  // namespace mh

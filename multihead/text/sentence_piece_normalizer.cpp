#include "multihead/text/sentence_piece_normalizer.h"

#include <algorithm>

#include "multihead/text/character_map.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

/// What the next bytes of the text become.
CharacterMap::Match next_match(const CharacterMap& map, const std::vector<std::string>& kept,
                               std::string_view rest) {
  size_t longest = 0;
  for (const std::string& text : kept) {
    if (rest.starts_with(text)) longest = std::max(longest, text.size());
  }
  if (longest > 0) return {longest, rest.substr(0, longest)};
  const auto match = map.longest(rest);
  if (match.length > 0) return match;
  const size_t character = utf8_length(rest[0]);
  return {character, rest.substr(0, character)};
}

}  // namespace

void apply_sentence_piece(const NormalizerStep& step, AlignedText& text) {
  const CharacterMap map(step.character_map);
  const std::string_view old = text.text;
  const std::string_view space = step.escape_whitespaces ? "\u2581" : " ";
  AlignedText result;
  result.tracked = text.tracked;
  const auto next = [&](size_t at) { return next_match(map, step.kept, old.substr(at)); };
  size_t at = 0;
  while (step.remove_extra_whitespaces && at < old.size() && next(at).replacement == " ")
    at += next(at).length;
  if (at == old.size()) {
    text = std::move(result);
    return;
  }
  if (step.add_dummy_prefix) result.append(space, text.from(at));
  bool after_space = step.remove_extra_whitespaces;
  while (at < old.size()) {
    auto [length, replacement] = next(at);
    while (after_space && replacement.starts_with(' ')) replacement.remove_prefix(1);
    for (const char& c : replacement) {
      result.append(c == ' ' ? space : std::string_view(&c, 1), text.from(at));
    }
    if (!replacement.empty()) after_space = step.remove_extra_whitespaces && replacement.ends_with(' ');
    at += length;
  }
  std::string_view trimmed = result.text;
  while (step.remove_extra_whitespaces && trimmed.ends_with(space)) trimmed.remove_suffix(space.size());
  if (trimmed.size() < result.text.size()) result = result.slice(0, trimmed.size());
  text = std::move(result);
}

}  // namespace mh

#include "multihead/heads/sites/answer_word.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"

namespace mh {
namespace {

bool begins_word(std::string_view text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0 ||
      std::ispunct(static_cast<unsigned char>(text[0])) != 0)
    return false;
  return terminal_characters(text)[0].width == 1;  // wide: East Asian, written without spaces
}

bool wants_space_behind(std::string_view text) {
  if (text.empty()) return false;
  const auto last = static_cast<unsigned char>(text.back());
  if (last >= 0x80) return terminal_characters(text).back().width == 1;
  return std::isalnum(last) != 0 || std::string_view(".,;:!?)").find(text.back()) != std::string_view::npos;
}

/// The tokens of an answer between two texts; `without` are the tokens without it, where `before` of them come first and
/// `after` last.
std::vector<int32_t> tokens_of_answer(const Tokenizer& tokenizer, const std::string& with,
                                      const std::string& answer, const std::vector<int32_t>& without,
                                      size_t before, size_t after) {
  std::vector<int32_t> ids = tokenizer.encode_ids(with, false);
  const auto first = static_cast<std::ptrdiff_t>(before), last = static_cast<std::ptrdiff_t>(after);
  if (ids.size() > before + after && std::equal(without.begin(), without.begin() + first, ids.begin()) &&
      std::equal(without.end() - last, without.end(), ids.end() - last))
    return {ids.begin() + first, ids.end() - last};
  return tokenizer.encode_ids(answer, false);  // the text's own tokens would be others with it
}

}  // namespace

std::vector<int32_t> AnswerPlace::tokens(const std::string& answer) const {
  if (!mask.empty()) {
    const std::vector<int32_t> without = tokenizer.encode_ids(before + mask + after, false);
    const auto at = std::find(without.begin(), without.end(), tokenizer.id_of(mask).value());
    const auto first = static_cast<size_t>(at - without.begin());
    return tokens_of_answer(tokenizer, before + answer + after, answer, without, first,
                            without.size() - first - 1);
  }
  const std::vector<int32_t> without = tokenizer.encode_ids(before, false);
  const char* const space = wants_space_behind(before) && begins_word(answer) ? " " : "";
  return tokens_of_answer(tokenizer, before + space + answer, answer, without, without.size(), 0);
}

AnswerWord answer_word(const AnswerPlace& place, const char* field, const std::string& text,
                       const std::function<void(const std::string&)>& remark) {
  const std::vector<int32_t> tokens = place.tokens(text);
  if (tokens.empty()) throw UsageError(fmt::format("`{}`: '{}' has no tokens; give a word", field, text));
  const int32_t token = tokens[0];
  if (token == place.tokenizer.unknown_id())
    throw UsageError(fmt::format("`{}`: the tokenizer does not know '{}'; take another word", field, text));
  AnswerWord word{
      .token = token, .label = place.tokenizer.shown(token), .tokens = static_cast<int64_t>(tokens.size())};
  if (word.tokens > 1 && remark)
    remark(fmt::format("'{}' has {} tokens; the first, {}, is what counts", text, word.tokens, word.label));
  return word;
}

}  // namespace mh

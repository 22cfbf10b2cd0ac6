#include "multihead/recipes/unknown_tokens.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "multihead/text/in_quotes.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

constexpr size_t kExamples = 5;

// Characters [first, last) of UTF-8 text.
std::string characters(std::string_view text, int32_t first, int32_t last) {
  size_t at = 0;
  int32_t number = 0;
  for (; number < first && at < text.size(); ++number) next_character(text, at);
  const size_t begin = at;
  for (; number < last && at < text.size(); ++number) next_character(text, at);
  return std::string(text.substr(begin, at - begin));
}

}  // namespace

void UnknownTokens::add(std::string_view line, std::span<const int32_t> ids, const Tokenizer& tokenizer) {
  const auto unknown = tokenizer.unknown_id();
  if (!unknown || std::find(ids.begin(), ids.end(), *unknown) == ids.end()) return;
  const Encoding encoding = tokenizer.encode(line);
  ++lines;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    if (encoding.ids[i] != *unknown) continue;
    ++tokens;
    auto [begin, end] = encoding.offsets[i];
    // Neighbours are one example: tokenizers of pieces fail at each character of a word in another script.
    while (i + 1 < encoding.ids.size() && encoding.ids[i + 1] == *unknown &&
           encoding.offsets[i + 1].first == end) {
      end = encoding.offsets[++i].second;
      ++tokens;
    }
    std::string example = characters(line, begin, end);
    example.erase(0, example.find_first_not_of(' '));  // a piece may hold the space before its word
    if (examples.size() < kExamples && !example.empty() &&
        std::find(examples.begin(), examples.end(), example) == examples.end()) {
      examples.push_back(example);
    }
  }
}

void UnknownTokens::tell(const std::function<void(const std::string&)>& remark) const {
  if (tokens > 0 && remark) remark(in_words() + "; the tokenizer does not know them");
}

std::string UnknownTokens::in_words() const {
  if (tokens == 0) return "";
  std::vector<std::string> quoted;
  for (const std::string& example : examples) quoted.push_back(in_quotes(example));
  return fmt::format("{} unknown token{} in {} line{}{}{}", tokens, tokens == 1 ? "" : "s", lines,
                     lines == 1 ? "" : "s", quoted.empty() ? "" : ", e.g. ", fmt::join(quoted, ", "));
}

}  // namespace mh

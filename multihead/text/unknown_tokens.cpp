#include "multihead/text/unknown_tokens.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "multihead/text/in_quotes.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

constexpr size_t kExamples = 5;

/// Cuts characters out of UTF-8 text, each time in a time that does not depend on where they stand: a line may
/// have as many unknown tokens as characters.
class Characters {
 public:
  explicit Characters(std::string_view text) : text_(text) {
    for (size_t at = 0; at < text.size(); at += utf8_length(text[at])) begins_.push_back(at);
    begins_.push_back(text.size());
  }
  /// Characters [first, last).
  std::string between(int32_t first, int32_t last) const {
    const size_t begin = byte(first), end = byte(last);
    return std::string(text_.substr(begin, end - begin));
  }

 private:
  size_t byte(int32_t character) const {
    return begins_[std::min(static_cast<size_t>(character), begins_.size() - 1)];
  }

  std::string_view text_;
  std::vector<size_t> begins_;  // of each character, and the end
};

}  // namespace

void UnknownTokens::add(std::string_view line, const Tokenizer& tokenizer) {
  const auto unknown = tokenizer.unknown_id();
  if (!unknown) return;
  const Encoding encoding = tokenizer.encode(line);
  if (std::find(encoding.ids.begin(), encoding.ids.end(), *unknown) == encoding.ids.end()) return;
  const Characters characters(line);
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
    std::string example = characters.between(begin, end);
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

#include "multihead/recipes/prompt_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/recipes/cut_tokens.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

int32_t characters(std::string_view text) {
  int32_t count = 0;
  for (size_t at = 0; at < text.size(); at += utf8_length(text[at])) ++count;
  return count;
}

}  // namespace

PromptTokens::PromptTokens(const ModelFolder& folder, std::optional<ChatTemplate> chat,
                           std::optional<std::string> system)
    : folder_(folder), chat_(std::move(chat)), system_(std::move(system)) {}

std::string PromptTokens::text_of(const std::string& prompt) const {
  return chat_ ? chat_->prompt(prompt, system_) : prompt;
}

std::vector<int32_t> PromptTokens::whole(const std::string& prompt) const {
  // A chat template writes its special tokens itself.
  std::vector<int32_t> tokens = folder_.source_tokens().encode_ids(text_of(prompt), !chat_);
  if (!tokens.empty()) return tokens;
  const int32_t start = folder_.model->facts().start_id;
  if (start < 0)
    throw UsageError(fmt::format("a prompt is empty, and the model of {} has no start token; give it a text",
                                 folder_.path.string()));
  return {start};
}

std::vector<int32_t> PromptTokens::cut(const std::string& prompt, size_t longest,
                                       const std::string& where) const {
  const Tokenizer& tokenizer = folder_.source_tokens();
  Encoding encoding = tokenizer.encode(text_of(prompt), !chat_);
  std::vector<int32_t>& tokens = encoding.ids;
  if (tokens.size() <= longest) return whole(prompt);
  const size_t excess = tokens.size() - longest;
  // Tokens [begin, end) may go.
  size_t begin = 0, end = 0;
  if (chat_) {
    const int32_t first = characters(chat_->opening(system_)), last = first + characters(prompt);
    const auto before = [&](int32_t place) {
      return static_cast<size_t>(std::count_if(encoding.offsets.begin(), encoding.offsets.end(),
                                               [&](const auto& offset) { return offset.first < place; }));
    };
    begin = before(first), end = before(last);
  } else {
    begin = opening_tokens(tokenizer), end = tokens.size() - closing_tokens(tokenizer);
  }
  if (end - begin < excess) {
    throw FormatError(fmt::format(
        "{}: {} tokens stand around its text, and the model reads {}; ask for fewer new tokens{}", where,
        tokens.size() - (end - begin), longest, chat_ ? ", or give a shorter system message" : ""));
  }
  const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(begin);
  tokens.erase(first, first + static_cast<std::ptrdiff_t>(excess));
  return tokens;
}

}  // namespace mh

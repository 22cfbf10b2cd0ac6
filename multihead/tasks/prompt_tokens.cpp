#include "multihead/tasks/prompt_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/text/cut_tokens.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

int32_t characters(std::string_view text) {
  int32_t count = 0;
  for (size_t at = 0; at < text.size(); at += utf8_length(text[at])) ++count;
  return count;
}

}  // namespace

PromptTokens::PromptTokens(const ModelFolder& folder, std::optional<ChatAround> chat)
    : folder_(folder), chat_(std::move(chat)) {}

std::string PromptTokens::text_of(const std::string& prompt) const {
  return chat_ ? chat_->chat.prompt(prompt, chat_->system, chat_->earlier) : prompt;
}

PromptTokens PromptTokens::without_oldest(size_t messages) const {
  std::optional<ChatAround> chat = chat_;
  if (chat)
    chat->earlier.erase(chat->earlier.begin(), chat->earlier.begin() + static_cast<std::ptrdiff_t>(messages));
  return PromptTokens(folder_, std::move(chat));
}

size_t PromptTokens::messages_to_leave_out(const std::string& prompt, size_t longest) const {
  if (!chat_) return 0;
  const std::vector<ChatMessage>& earlier = chat_->earlier;
  std::vector<size_t> choices{0};  // most templates refuse a chat that an assistant begins
  for (size_t i = 1; i <= earlier.size(); ++i) {
    if (i == earlier.size() || earlier[i].role == ChatRole::kUser) choices.push_back(i);
  }
  // Fewer messages are fewer tokens, so halving finds the number.
  size_t low = 0, high = choices.size() - 1;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (without_oldest(choices[middle]).whole(prompt).size() <= longest) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return choices[low];
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
  const ChatPrompt chat = chat_ ? chat_->chat.placed(prompt, chat_->system, chat_->earlier) : ChatPrompt{};
  Encoding encoding = tokenizer.encode(chat_ ? chat.text : prompt, !chat_);
  std::vector<int32_t>& tokens = encoding.ids;
  if (tokens.size() <= longest) return whole(prompt);
  const size_t excess = tokens.size() - longest;
  // Tokens [begin, end) may go.
  size_t begin = 0, end = 0;
  if (chat_) {
    const std::string_view text = chat.text;
    const int32_t first = characters(text.substr(0, chat.begin)), last = characters(text.substr(0, chat.end));
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

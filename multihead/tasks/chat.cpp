#include "multihead/tasks/chat.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/model_folder.h"
#include "multihead/tasks/run_template.h"

namespace mh {
namespace {

/// Stands for a message whose place is looked for. No template changes it: it begins and ends with letters.
constexpr const char* kPlaceholder = "Placeholder0f7cOfAMessage";

std::string written(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                    bool add_generation_prompt) {
  std::string text =
      run_template(chat.jinja, {.messages = messages, .texts = chat.special_tokens, .now = chat.now},
                   add_generation_prompt, chat.name);
  if (text.empty()) throw UsageError(fmt::format("{}: it writes no text of the messages", chat.name));
  return text;
}

std::vector<ChatMessage> messages_of(const std::string& message, const std::optional<std::string>& system,
                                     std::span<const ChatMessage> earlier) {
  std::vector<ChatMessage> all;
  if (system) all.push_back({ChatRole::kSystem, *system});
  all.insert(all.end(), earlier.begin(), earlier.end());
  all.push_back({ChatRole::kUser, message});
  return all;
}

/// The markers in a text: <|im_start|>, <|eot_id|>, ...
std::vector<std::string_view> markers_in(std::string_view text) {
  std::vector<std::string_view> found;
  for (size_t at = 0; (at = text.find("<|", at)) != std::string_view::npos; ++at) {
    const size_t end = text.find("|>", at + 2);
    if (end == std::string_view::npos) break;
    const std::string_view marker = text.substr(at, end + 2 - at);
    if (marker.find_first_of(" \t\r\n<", 1) == std::string_view::npos) found.push_back(marker);
  }
  return found;
}

void check_markers(const ChatTemplate& chat, const Tokenizer& tokenizer, const std::string& path) {
  std::string text;
  try {
    text = chat.prompt(kPlaceholder);
  } catch (const UsageError&) {
    return;  // another chat may be what it wants
  }
  for (const std::string_view marker : markers_in(text)) {
    const auto id = tokenizer.id_of(marker);
    if (!id) continue;  // Zephyr and TinyLlama were trained with the pieces of <|user|>
    const std::vector<int32_t> read = tokenizer.encode_ids(marker, false);
    if (read == std::vector{*id}) continue;
    throw UsageError(fmt::format(
        "the tokenizer of {} reads {}, which its chat_template writes, as {} tokens in place of its own, {}; "
        "list it among its added tokens",
        path, marker, read.size(), *id));
  }
}

}  // namespace

ChatTemplate ChatTemplate::of(const ModelFolder& folder) {
  const std::string path = folder.path.string();
  if (folder.chat_template.empty()) {
    throw UsageError(
        fmt::format("{} has no chat_template: it was not trained to chat; give it a text to continue", path));
  }
  ChatTemplate chat{.jinja = folder.chat_template,
                    .special_tokens = folder.special_tokens,
                    .name = fmt::format("the chat_template of {}", path)};
  check_markers(chat, folder.source_tokens(), path);
  return chat;
}

std::string ChatTemplate::prompt(const std::string& message, const std::optional<std::string>& system,
                                 std::span<const ChatMessage> earlier) const {
  return written(*this, messages_of(message, system, earlier), true);
}

ChatPrompt ChatTemplate::placed(const std::string& message, const std::optional<std::string>& system,
                                std::span<const ChatMessage> earlier) const {
  ChatPrompt found{.text = prompt(message, system, earlier)};
  const std::string other = prompt(kPlaceholder, system, earlier);
  const size_t begin = other.rfind(kPlaceholder);
  if (begin == std::string::npos) return found;
  const std::string_view before = std::string_view(other).substr(0, begin),
                         after =
                             std::string_view(other).substr(begin + std::string_view(kPlaceholder).size());
  if (before.size() + after.size() > found.text.size() || !found.text.starts_with(before) ||
      !found.text.ends_with(after))
    return found;
  found.begin = before.size();
  found.end = found.text.size() - after.size();
  return found;
}

std::optional<int32_t> ChatTemplate::end_token(const Tokenizer& tokenizer) const {
  std::vector<ChatMessage> messages{{ChatRole::kUser, "Hi"}, {ChatRole::kAssistant, kPlaceholder}};
  std::string text;
  try {
    text = written(*this, messages, false);
  } catch (const UsageError&) {  // some want the last message to be the user's
    messages.push_back({ChatRole::kUser, "Go on"});
    try {
      text = written(*this, messages, true);
    } catch (const UsageError&) {
      return std::nullopt;
    }
  }
  size_t end = text.rfind(kPlaceholder);
  if (end == std::string::npos) return std::nullopt;
  end = text.find_first_not_of(" \t\r\n", end + std::string_view(kPlaceholder).size());
  if (end == std::string::npos) return std::nullopt;
  const std::vector<int32_t> tokens = tokenizer.encode_ids(std::string_view(text).substr(end), false);
  // A special token is left out of what people read.
  if (tokens.empty() || !tokenizer.decode(std::span(tokens).first(1)).empty()) return std::nullopt;
  return tokens.front();
}

}  // namespace mh

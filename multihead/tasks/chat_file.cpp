#include "multihead/tasks/chat_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

ChatMessage parse_message(const std::string& line, const std::string& where) {
  const nlohmann::json message = parse_json_strictly(line, where);
  const auto is_text = [&](const char* key) { return message.contains(key) && message[key].is_string(); };
  if (!message.is_object() || message.size() != 2 || !is_text("role") || !is_text("content")) {
    throw FormatError(fmt::format(R"({}: expected {{"role": "user", "content": "..."}}, got {})", where,
                                  json_excerpt(message)));
  }
  const std::string role = message["role"];
  const auto known = std::find_if(kChatRoles.begin(), kChatRoles.end(),
                                  [&](const auto& entry) { return entry.first == role; });
  if (known == kChatRoles.end()) {
    throw FormatError(fmt::format("{}: expected the role system, user or assistant, got {}", where,
                                  json_excerpt(message["role"])));
  }
  return {.role = known->second, .content = message["content"]};
}

}  // namespace

std::vector<ChatMessage> parse_chat(std::span<const std::string> lines, const std::string& name) {
  std::vector<ChatMessage> messages;
  for (const std::string& line : lines) {
    const std::string where = fmt::format("{} line {}", name, messages.size() + 1);
    if (line.find_first_not_of(" \t") == std::string::npos)
      throw FormatError(fmt::format("{} is empty; give a message a line, and leave no line empty", where));
    messages.push_back(parse_message(line, where));
    if (messages.back().role == ChatRole::kSystem && messages.size() > 1)
      throw FormatError(fmt::format("{}: a system message must be the first message", where));
  }
  if (messages.empty()) throw FormatError(fmt::format("{} is empty; give a message a line", name));
  if (messages.back().role != ChatRole::kUser) {
    throw FormatError(
        fmt::format("{}: the last message has the role {}; the model answers a message of the user", name,
                    name_of(messages.back().role, kChatRoles)));
  }
  return messages;
}

}  // namespace mh

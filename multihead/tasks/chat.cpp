#include "multihead/tasks/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/model_folder.h"

namespace mh {
namespace {

void drop_spaces_at_end(std::string& text, std::string_view which) {
  const size_t last = text.find_last_not_of(which);
  text.resize(last == std::string::npos ? 0 : last + 1);
}

/// The same template written one way: in {{ }} and {% %} no spaces, texts in single quotes and \n for a line
/// end in them; between these only the spaces that Jinja writes. It is run with trim_blocks (no line end
/// behind %}) and lstrip_blocks (no spaces before {% at the beginning of a line); a minus in {{-, -}}, {%-,
/// -%} takes away all spaces on that side.
std::string written_one_way(std::string_view jinja) {
  std::string out;
  while (!jinja.empty()) {
    const size_t open = std::min(jinja.find("{{"), jinja.find("{%"));
    out += jinja.substr(0, open);
    if (open == std::string_view::npos) break;
    const bool block = jinja[open + 1] == '%';
    jinja.remove_prefix(open + 2);
    if (jinja.starts_with('-')) {
      jinja.remove_prefix(1);
      drop_spaces_at_end(out, " \t\r\n");
    } else if (block) {
      const size_t text = out.find_last_not_of(" \t");
      if (text == std::string::npos || out[text] == '\n') drop_spaces_at_end(out, " \t");
    }
    out += block ? "{%" : "{{";

    const std::string_view close = block ? "%}" : "}}";
    char quote = 0;
    for (; !jinja.empty() && (quote != 0 || !jinja.starts_with(close)); jinja.remove_prefix(1)) {
      const char c = jinja[0];
      if (quote == 0) {
        if (c == '\'' || c == '"') quote = c;
        if (std::string_view(" \t\r\n").find(c) == std::string_view::npos) out += quote != 0 ? '\'' : c;
      } else if (c == '\\' && jinja.size() > 1) {
        out += jinja.substr(0, 2);
        jinja.remove_prefix(1);
      } else if (c == quote) {
        out += '\'';
        quote = 0;
      } else {
        out += c == '\n' ? "\\n" : c == '\'' ? "\\'" : std::string(1, c);
      }
    }
    jinja.remove_prefix(std::min(jinja.size(), close.size()));
    if (out.ends_with('-')) {
      out.pop_back();
      jinja.remove_prefix(std::min(jinja.size(), jinja.find_first_not_of(" \t\r\n")));
    } else if (block && jinja.starts_with('\n')) {
      jinja.remove_prefix(1);
    }
    out += close;
  }
  return out;
}

/// Removes `start` from the beginning; false when it is not there.
bool take(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

std::string without_escapes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      ++i;
      out += text[i] == 'n' ? '\n' : text[i];
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::of(const std::string& jinja) {
  const std::string all = written_one_way(jinja);
  std::string_view rest = all;
  ChatTemplate found;
  take(rest, "{%ifnotadd_generation_promptisdefined%}{%setadd_generation_prompt=false%}{%endif%}");
  if (!take(rest, "{%formessageinmessages%}")) return std::nullopt;
  if (take(rest, "{%ifloop.firstandmessages[0]['role']!='system'%}{{'<|im_start|>system\\n")) {
    constexpr std::string_view kSystemEnd = "<|im_end|>\\n'}}{%endif%}";
    const size_t end = rest.find(kSystemEnd);
    if (end == std::string_view::npos) return std::nullopt;
    found.default_system = without_escapes(rest.substr(0, end));
    rest.remove_prefix(end + kSystemEnd.size());
  }
  if (rest ==
      "{{'<|im_start|>'+message['role']+'\\n'+message['content']+'<|im_end|>'+'\\n'}}{%endfor%}"
      "{%ifadd_generation_prompt%}{{'<|im_start|>assistant\\n'}}{%endif%}")
    return found;
  return std::nullopt;
}

ChatTemplate ChatTemplate::of(const ModelFolder& folder) {
  const std::string path = folder.path.string();
  if (folder.chat_template.empty()) {
    throw UsageError(
        fmt::format("{} has no chat_template: it was not trained to chat; give it a text to continue", path));
  }
  const auto found = of(folder.chat_template);
  if (!found) {
    throw UsageError(
        fmt::format("the chat_template of {} is not ChatML, the only one known; write the prompt as the "
                    "model wants it, without chat",
                    path));
  }
  const Tokenizer& tokenizer = folder.source_tokens();
  for (const std::string_view marker : kChatMarkers) {
    const char* const does = marker == kChatEnd ? "ends" : "begins";
    const auto id = tokenizer.id_of(marker);
    if (!id)
      throw UsageError(
          fmt::format("the tokenizer of {} has no token {}, which {} ChatML's messages", path, marker, does));
    const std::vector<int32_t> read = tokenizer.encode_ids(marker, false);
    if (read == std::vector{*id}) continue;
    throw UsageError(fmt::format(
        "the tokenizer of {} reads {}, which {} ChatML's messages, as {} tokens in place of its own, {}; "
        "list it among its added tokens",
        path, marker, does, read.size(), *id));
  }
  return *found;
}

std::string ChatTemplate::opening(const std::optional<std::string>& system,
                                  std::span<const ChatMessage> earlier) const {
  std::string text;
  const auto write = [&](ChatRole role, const std::string& content) {
    text += fmt::format("<|im_start|>{}\n{}<|im_end|>\n", name_of(role, kChatRoles), content);
  };
  if (const auto& first = system ? system : default_system) write(ChatRole::kSystem, *first);
  for (const ChatMessage& message : earlier) write(message.role, message.content);
  return text + "<|im_start|>user\n";
}

std::string ChatTemplate::prompt(const std::string& message, const std::optional<std::string>& system,
                                 std::span<const ChatMessage> earlier) const {
  return opening(system, earlier) + message + "<|im_end|>\n<|im_start|>assistant\n";
}

}  // namespace mh

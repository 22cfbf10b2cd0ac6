// Runs a chat template: a text in Jinja that comes with a model and makes a prompt of messages. The engine is
// llama.cpp's (third_party/llama.cpp/README.md); a template has limits (template_limits.h).
#pragma once

#include <cstddef>
#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "multihead/tasks/generate_text.h"
#include "multihead/tasks/template_limits.h"

namespace mh {

/// The longest template, and the longest text of one, in bytes.
inline constexpr size_t kLongestTemplate = size_t{1} << 20;
inline constexpr size_t kLongestPrompt = size_t{1} << 22;

/// The variables of a template, as transformers gives them: besides these `tools` and `documents` are None, and
/// add_generation_prompt is as run_template() is told.
struct TemplateVariables {
  std::span<const ChatMessage> messages;
  std::map<std::string, std::string> texts = {};  // bos_token, eos_token, ...
  std::optional<std::tm> now = std::nullopt;      // for strftime_now; null: the time of the clock
  size_t work = TemplateLimits::kWork;
};

/// Returns the text, which ends where the assistant's answer begins if add_generation_prompt. Throws UsageError, in one line
/// that starts with `name`, on a template that cannot be read, asks for what the engine has not, finds an error in the messages
/// or has no end.
std::string run_template(const std::string& jinja, const TemplateVariables& variables,
                         bool add_generation_prompt, const std::string& name);

}  // namespace mh

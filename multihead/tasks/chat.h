// The prompts that chat models were trained on. A model comes with a Jinja template that makes a prompt of
// messages; this library runs no Jinja, but knows the templates of ChatML:
//
//   <|im_start|>system\nYou are a helpful AI assistant ...<|im_end|>\n
//   <|im_start|>user\nHow high is the sky?<|im_end|>\n
//   <|im_start|>assistant\n
#pragma once

#include <optional>
#include <span>
#include <string>

#include "multihead/folders/chat_markers.h"
#include "multihead/tasks/generate_text.h"

namespace mh {

struct ModelFolder;

/// A template of ChatML, and the system message that it adds when there is none.
struct ChatTemplate {
  std::optional<std::string> default_system = std::nullopt;

  /// Reads a Jinja template: each message between <|im_start|> and <|im_end|>, with or without a default
  /// system message, as SmolLM2's and Qwen2's are. Returns null when it is another.
  static std::optional<ChatTemplate> of(const std::string& jinja);
  /// The template of a model. Throws UsageError when it has none, one that is not known, or a tokenizer to which
  /// <|im_start|> or <|im_end|> in a text is not one token: a model was trained with whole ones.
  static ChatTemplate of(const ModelFolder& folder);

  /// The prompt for a message of the user. system: in place of the default one; earlier: the messages before it.
  std::string prompt(const std::string& message, const std::optional<std::string>& system = std::nullopt,
                     std::span<const ChatMessage> earlier = {}) const;
  /// What stands before the message in it.
  std::string opening(const std::optional<std::string>& system = std::nullopt,
                      std::span<const ChatMessage> earlier = {}) const;
};

}  // namespace mh

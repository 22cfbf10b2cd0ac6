// The prompts that chat models were trained on. A model comes with a Jinja template that makes a prompt of messages, e.g.
//
//   <|im_start|>system\nYou are a helpful AI assistant ...<|im_end|>\n
//   <|im_start|>user\nHow high is the sky?<|im_end|>\n
//   <|im_start|>assistant\n
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "multihead/tasks/generate_text.h"

namespace mh {

struct ModelFolder;

/// A text for the model, and which of its bytes, [begin, end), are the last message: none where the template does not write it
/// as one piece.
struct ChatPrompt {
  std::string text;
  size_t begin = 0, end = 0;
};

/// A template and what it is given besides messages.
struct ChatTemplate {
  std::string jinja;
  std::map<std::string, std::string> special_tokens = {};  // "bos_token", "eos_token", ...
  std::string name = "the chat_template";                  // what errors begin with
  std::optional<std::tm> now = std::nullopt;               // the date that it may write; null: the clock's

  /// The template of a model. Throws UsageError when it has none, or a tokenizer that has a marker that it writes, such as
  /// <|im_start|>, and cuts it into several tokens: the model was trained with the whole one.
  static ChatTemplate of(const ModelFolder& folder);

  /// The prompt for a message of the user. system: the first message; without one the template may add one of its own.
  /// earlier: the messages before. Throws UsageError that begins with `name`: the template refuses the messages (its own words are
  /// shown), asks for what is not done here, does not end, or writes no text.
  std::string prompt(const std::string& message, const std::optional<std::string>& system = std::nullopt,
                     std::span<const ChatMessage> earlier = {}) const;
  /// The same, with the place of the message.
  ChatPrompt placed(const std::string& message, const std::optional<std::string>& system = std::nullopt,
                    std::span<const ChatMessage> earlier = {}) const;
  /// The token that ends an answer: the special one that the template writes behind a message of the assistant. Null: it writes
  /// none.
  std::optional<int32_t> end_token(const Tokenizer& tokenizer) const;
};

}  // namespace mh

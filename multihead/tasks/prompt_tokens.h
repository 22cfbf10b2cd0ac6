// The tokens of a prompt. A prompt that leaves too little room for new tokens loses its beginning, as in other
// tools: what comes next depends most on the end. Special tokens before the text stay. Of a chat the template with
// its system message stays: the oldest messages are left out, and then the user's message loses its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/tasks/chat.h"

namespace mh {

/// What is put around a message.
struct ChatAround {
  ChatTemplate chat;
  std::optional<std::string> system = std::nullopt;  // in place of the template's
  std::vector<ChatMessage> earlier = {};             // the messages before it
};

class PromptTokens {
 public:
  /// chat: the prompts are messages of a chat.
  explicit PromptTokens(const ModelFolder& folder, std::optional<ChatAround> chat = std::nullopt);

  /// The fewest of the earlier messages to leave out, the oldest first, so that no more than `longest` tokens are
  /// left and the first message is a user's; all of them where that is not enough.
  size_t messages_to_leave_out(const std::string& prompt, size_t longest) const;
  PromptTokens without_oldest(size_t messages) const;
  /// All tokens; those of an empty prompt are the model's start token. Throws FormatError on a prompt that is
  /// not UTF-8, UsageError on an empty one when the model has no start token.
  std::vector<int32_t> whole(const std::string& prompt) const;
  /// The last `longest` of them and the special tokens before, which count. Throws FormatError that names the
  /// prompt `where` when what stays of every prompt is longer.
  std::vector<int32_t> cut(const std::string& prompt, size_t longest, const std::string& where) const;

 private:
  std::string text_of(const std::string& prompt) const;

  const ModelFolder& folder_;
  std::optional<ChatAround> chat_;
};

}  // namespace mh

// Text that continues a prompt, or answers it, in one call.
//
//   const mh::ModelFolder folder = mh::load_model_folder("gpt2");
//   const auto texts = mh::generate_text(folder, {"The sky is"}, {.generate = {.max_new_tokens = 20}});
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/folders/model_folder.h"
#include "multihead/generate/generate.h"
#include "multihead/io/config.h"
#include "multihead/text/long_lines.h"

namespace mh {

enum class ChatRole { kSystem, kUser, kAssistant };
inline constexpr EnumNames<ChatRole> kChatRoles = {
    {"system", ChatRole::kSystem}, {"user", ChatRole::kUser}, {"assistant", ChatRole::kAssistant}};

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string content;
};

struct GenerateTextOptions {
  /// What the folder's generation_config.json says of end tokens, forbidden tokens and repeated n-grams counts besides.
  GenerateOptions generate = {};
  /// A text ends before the first of these strings, which may begin within one token and end in another.
  std::vector<std::string> stop = {};
  /// The prompts are messages of a user; the model answers as its chat template has it (chat.h).
  bool chat = false;
  std::optional<std::string> system = std::nullopt;  // with chat: in place of the template's default
  /// With chat: the messages before the prompt, the oldest first. Only the first may be the system's, in place of
  /// `system`.
  std::vector<ChatMessage> earlier = {};
  LinesFrom from = {.one = "prompt"};  // what errors and remarks call the prompts
  bool strict = false;                 // refuse a prompt that is too long, which is cut otherwise
  /// Called with each piece of the text of prompt n, counted from 0, as soon as its bytes are complete.
  std::function<void(size_t n, std::string_view piece)> on_text = nullptr;
  /// Hears ModelFolder::generation_remark (not again where there are `earlier` messages), how many prompts were cut, and of texts that ended because the model has no more positions, a line
  /// each.
  std::function<void(const std::string&)> remark = nullptr;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Text";
    generate.visit(v);
    v("stop", stop, {}, {.group = kGroup, .help = "End a text before this string", .value = "TEXT"});
    v("strict", strict, {},
      {.group = kGroup,
       .help = "Refuse a prompt that leaves no room for new tokens; its beginning is cut off otherwise"});
    v("chat", chat, {},
      {.group = kGroup, .help = "The prompts are messages, which the model answers by its chat template"});
    v("system", system, {},
      {.group = kGroup,
       .help = "Of a chat: the system message, in place of the template's",
       .rare = true,
       .value = "TEXT"});
  }
};

struct GeneratedText {
  std::string text;             // without the prompt; bytes that form no UTF-8 are U+FFFD
  std::vector<int32_t> prompt;  // its tokens
  /// Its tokens may spell more than `text` where a stop string ended it: GenerationEnd::kStopped.
  Generated generated;
};

/// Returns a text for each prompt, in order. An empty prompt is the model's start token. Prompt and new tokens
/// together are at most as many as the model has positions: a prompt that leaves fewer than max_new_tokens of
/// them, and fewer than half, is cut so that one or the other is free (prompt_tokens.h says where); of a chat the
/// oldest messages are left out first. Throws
/// FileError when the folder has no tokenizer; UsageError when its model does not continue a text, and on
/// invalid options; FormatError on a prompt that is not UTF-8, whose chat template leaves no room for
/// it, or, with `strict`, that is too long.
std::vector<GeneratedText> generate_text(const ModelFolder& folder, const std::vector<std::string>& prompts,
                                         const GenerateTextOptions& options = {});
/// The same of token ids in place of prompts, which are read as they are. Throws UsageError on ids that are none of the model's and on a
/// chat, ShapeError on prompts that leave no room for a new token.
std::vector<GeneratedText> continue_tokens(const ModelFolder& folder,
                                           std::vector<std::vector<int32_t>> prompts,
                                           const GenerateTextOptions& options = {});

}  // namespace mh

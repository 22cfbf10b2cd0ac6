#include "multihead/tasks/generate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/generate/stopped_text.h"
#include "multihead/tasks/chat.h"
#include "multihead/tasks/prompt_tokens.h"

namespace mh {
namespace {

/// Of a chat, what stands around each prompt.
std::optional<ChatAround> chat_around(const ModelFolder& folder, const GenerateTextOptions& options) {
  if (!options.chat) {
    if (!options.earlier.empty()) throw UsageError("`earlier` messages need `chat`");
    return std::nullopt;
  }
  ChatAround around{.chat = ChatTemplate::of(folder), .system = options.system, .earlier = options.earlier};
  for (size_t i = 0; i < around.earlier.size(); ++i) {
    if (around.earlier[i].role != ChatRole::kSystem) continue;
    if (i > 0) throw UsageError("only the first message of a chat may be the system's");
    if (options.system) throw UsageError("`system`: the chat begins with a system message of its own");
  }
  if (!around.earlier.empty() && around.earlier[0].role == ChatRole::kSystem) {
    around.system = around.earlier[0].content;
    around.earlier.erase(around.earlier.begin());
  }
  return around;
}

std::vector<std::vector<int32_t>> tokens_of(const ModelFolder& folder,
                                            const std::vector<std::string>& prompts,
                                            const GenerateTextOptions& options,
                                            std::optional<ChatAround> chat) {
  const int32_t positions = folder.causal_model().facts().max_positions;
  const int32_t room = std::max(1, std::min(options.generate.max_new_tokens, positions / 2));
  const auto longest = static_cast<size_t>(positions - room);
  const PromptTokens prompt_tokens(folder, std::move(chat));
  const std::string new_ones = fmt::format("{} new one{}", room, room == 1 ? "" : "s");
  LongLines long_lines(
      options.from,
      {.longest = longest, .before = new_ones, .strict = options.strict, .cut = TextEnd::kStart});
  std::vector<std::vector<int32_t>> all;
  for (size_t n = 0; n < prompts.size(); ++n) {
    const size_t left_out = options.strict ? 0 : prompt_tokens.messages_to_leave_out(prompts[n], longest);
    const PromptTokens rest = prompt_tokens.without_oldest(left_out);
    std::vector<int32_t> tokens = rest.whole(prompts[n]);
    long_lines.note(n, tokens.size());
    if (tokens.size() > longest) tokens = rest.cut(prompts[n], longest, options.from.at(n));
    all.push_back(std::move(tokens));
    if (left_out > 0 && options.remark) {
      options.remark(
          fmt::format("{} before {} left out; the model reads {} tokens before {}",
                      left_out == 1 ? "the oldest message" : fmt::format("the {} oldest messages", left_out),
                      options.from.at(n), longest, new_ones));
    }
  }
  long_lines.tell(prompts.size(), options.remark);
  return all;
}

/// end: a token that ends a text besides those of the folder.
std::vector<GeneratedText> continued(const ModelFolder& folder, std::vector<std::vector<int32_t>> tokens,
                                     std::optional<int32_t> end, const GenerateTextOptions& options) {
  const Tokenizer& tokenizer = folder.source_tokens();
  const bool beam = options.generate.next_token == NextToken::kBeam;
  std::vector<StoppedText> texts;
  for (const auto& prompt : tokens) texts.emplace_back(tokenizer, prompt, options.stop);

  GenerateOptions wanted = options.generate;
  folder.generation.complete(wanted);
  if (end) wanted.end_tokens.push_back(*end);
  const auto tell = [&](size_t n, const std::string& piece) {
    if (options.on_text && !piece.empty()) options.on_text(n, piece);
  };
  if (beam && !options.stop.empty()) {
    wanted.stops = [&](size_t n, std::span<const int32_t> of_text) {
      return stops_at_last(tokenizer, tokens[n], of_text, options.stop) ||
             (options.generate.stops && options.generate.stops(n, of_text));
    };
  } else if (!beam) {
    wanted.goes_on = [&](size_t n, int32_t token) {
      tell(n, texts[n].add(token));
      return !texts[n].stopped() && (!options.generate.goes_on || options.generate.goes_on(n, token));
    };
  }
  auto generated = generate(folder.causal_model(), tokens, wanted);

  std::vector<GeneratedText> results;
  for (size_t n = 0; n < tokens.size(); ++n) {
    if (beam) {
      for (const int32_t token : generated[n].tokens) tell(n, texts[n].add(token));
    }
    tell(n, texts[n].finish());
    if (texts[n].stopped()) generated[n].end = GenerationEnd::kStopped;
    if (options.remark && generated[n].end == GenerationEnd::kMaxPositions) {
      options.remark(fmt::format("the text of {} ends at the model's longest, {} tokens with its prompt",
                                 options.from.at(n), folder.model->facts().max_positions));
    }
    results.push_back(
        {.text = texts[n].all(), .prompt = std::move(tokens[n]), .generated = std::move(generated[n])});
  }
  return results;
}

void check_generating(const ModelFolder& folder, const GenerateTextOptions& options) {
  folder.causal_model(), folder.source_tokens();  // throw where there is none
  check_generate(options.generate);
  if (options.remark && options.earlier.empty() && !folder.generation_remark.empty())
    options.remark(folder.generation_remark);
}

}  // namespace

std::vector<GeneratedText> generate_text(const ModelFolder& folder, const std::vector<std::string>& prompts,
                                         const GenerateTextOptions& options) {
  check_generating(folder, options);
  const std::optional<ChatAround> chat = chat_around(folder, options);
  const auto end = chat ? chat->chat.end_token(folder.source_tokens()) : std::nullopt;
  return continued(folder, tokens_of(folder, prompts, options, chat), end, options);
}

std::vector<GeneratedText> continue_tokens(const ModelFolder& folder,
                                           std::vector<std::vector<int32_t>> prompts,
                                           const GenerateTextOptions& options) {
  if (options.chat || !options.earlier.empty())
    throw UsageError("a chat is made of text; leave `chat` and its messages out beside token ids");
  check_generating(folder, options);
  return continued(folder, std::move(prompts), std::nullopt, options);
}

}  // namespace mh

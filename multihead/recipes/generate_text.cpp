#include "multihead/recipes/generate_text.h"

#include <fmt/format.h>

#include <utility>

#include "multihead/base/error.h"
#include "multihead/generate/stop_strings.h"
#include "multihead/generate/text_stream.h"
#include "multihead/recipes/chat.h"

namespace mh {
namespace {

const LanguageModel& causal_model(const ModelFolder& folder) {
  const LanguageModel& model = folder.language_model();
  if (model.facts().source_vocabulary > 0) {
    throw UsageError(fmt::format(
        "{} holds a {} model, which translates a text instead of continuing it; use `multihead translate`",
        folder.path.string(), folder.model_type));
  }
  return model;
}

/// The text of one prompt as it comes.
class Text {
 public:
  Text(const Tokenizer& tokenizer, std::span<const int32_t> prompt, const std::vector<std::string>& stop)
      : stream_(tokenizer, prompt), stop_(stop) {}

  std::string add(int32_t token) { return shown(stop_.add(stream_.add(token))); }
  std::string finish() {
    std::string rest = stop_.add(stream_.finish());
    return shown(rest + stop_.finish());
  }
  bool stopped() const { return stop_.found(); }
  std::string all = {};  // that was shown

 private:
  std::string shown(std::string piece) {
    all += piece;
    return piece;
  }

  TextStream stream_;
  StopStrings stop_;
};

std::vector<int32_t> prompt_tokens(const ModelFolder& folder, const std::string& prompt,
                                   const GenerateTextOptions& options, const ModelFacts& facts) {
  // A chat template writes its special tokens itself.
  std::vector<int32_t> tokens =
      options.chat
          ? folder.source_tokens().encode_ids(ChatTemplate::of(folder).prompt(prompt, options.system), false)
          : folder.source_tokens().encode_ids(prompt);
  if (!tokens.empty()) return tokens;
  if (facts.start_id < 0)
    throw UsageError(fmt::format("a prompt is empty, and the model of {} has no start token; give it a text",
                                 folder.path.string()));
  return {facts.start_id};
}

}  // namespace

std::vector<GeneratedText> generate_text(const ModelFolder& folder, const std::vector<std::string>& prompts,
                                         const GenerateTextOptions& options) {
  const LanguageModel& model = causal_model(folder);
  const ModelFacts facts = model.facts();
  const Tokenizer& tokenizer = folder.source_tokens();
  const bool beam = options.generate.next_token == NextToken::kBeam;
  if (beam && !options.stop.empty())
    throw UsageError("`stop` is for sampling and greedy search; a beam search ends at its end tokens");

  std::vector<std::vector<int32_t>> tokens;
  std::vector<Text> texts;
  for (const std::string& prompt : prompts) {
    tokens.push_back(prompt_tokens(folder, prompt, options, facts));
    if (std::ssize(tokens.back()) >= facts.max_positions) {
      throw UsageError(fmt::format(
          "prompt {} has {} tokens; the model has {} positions, for the prompt and what follows: shorten it",
          tokens.size(), tokens.back().size(), facts.max_positions));
    }
    texts.emplace_back(tokenizer, tokens.back(), options.stop);
  }

  GenerateOptions wanted = options.generate;
  const auto append = [](std::vector<int32_t>& list, const std::vector<int32_t>& more) {
    list.insert(list.end(), more.begin(), more.end());
  };
  append(wanted.end_tokens, folder.end_tokens);
  append(wanted.filters.suppressed, folder.suppressed);
  if (options.chat) append(wanted.end_tokens, {tokenizer.id_of(kChatEnd).value()});
  const auto tell = [&](size_t n, const std::string& piece) {
    if (options.on_text && !piece.empty()) options.on_text(n, piece);
  };
  if (!beam) {
    wanted.goes_on = [&](size_t n, int32_t token) {
      tell(n, texts[n].add(token));
      return !texts[n].stopped() && (!options.generate.goes_on || options.generate.goes_on(n, token));
    };
  }
  auto generated = generate(model, tokens, wanted);

  std::vector<GeneratedText> results;
  for (size_t n = 0; n < prompts.size(); ++n) {
    if (beam) {
      for (const int32_t token : generated[n].tokens) tell(n, texts[n].add(token));
    }
    tell(n, texts[n].finish());
    if (texts[n].stopped()) generated[n].end = GenerationEnd::kStopped;
    if (options.remark && generated[n].end == GenerationEnd::kMaxPositions) {
      options.remark(
          fmt::format("the text of prompt {} ends at the model's longest, {} tokens with its prompt", n + 1,
                      facts.max_positions));
    }
    results.push_back({.text = std::move(texts[n].all),
                       .prompt = std::move(tokens[n]),
                       .generated = std::move(generated[n])});
  }
  return results;
}

}  // namespace mh

#include "multihead/folders/sentence_tokens.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"
#include "multihead/text/cut_tokens.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/unicode.h"

namespace mh {

void check_sentence_model(const SentenceModel& model) {
  if (!model.folder.model)
    throw UsageError("this sentence model has no model; load_sentence_model() reads one");
  const auto special = static_cast<int32_t>(model.folder.source_tokens().encode_ids("").size());
  if (model.longest <= special) {
    throw UsageError(fmt::format("`longest` is {}; sentences need more than the {} special tokens",
                                 model.longest, special));
  }
}

TextPrompt text_prompt(const SentenceModel& model, std::string text) {
  if (text.empty() || model.pools_prompt) return {.text = std::move(text)};
  const TextReader reader(model.folder, static_cast<size_t>(model.longest));
  const auto ids = reader.read(model.lowercase ? lower_case(text) : text).ids;
  // The unknown token is a special one, too.
  const bool ends = !ids.empty() &&
                    (closing_tokens(reader.tokenizer()) > 0 || ids.back() == reader.tokenizer().unknown_id());
  return {.text = std::move(text), .unpooled = static_cast<int32_t>(ids.size()) - (ends ? 1 : 0)};
}

TextPrompt chosen_prompt(const SentenceModel& model, const std::optional<std::string>& name,
                         const std::optional<std::string>& text) {
  if (name && text)
    throw UsageError("`prompt_name` and `prompt` are both given; give the name of a prompt, or a text");
  if (text) {
    if (const std::string problem = utf8_problem(*text); !problem.empty())
      throw UsageError(fmt::format("`prompt`: {}", problem));
    return text_prompt(model, *text);
  }
  if (!name) return {.text = model.prompt, .unpooled = model.unpooled};
  std::vector<std::string> names;
  for (const SentencePrompt& prompt : model.prompts) {
    if (prompt.name == *name) return text_prompt(model, prompt.text);
    names.push_back(in_quotes(prompt.name));
  }
  const std::string folder = model.folder.path.string();
  if (names.empty()) {
    throw UsageError(
        fmt::format("{} has no prompt {}, and no others in its config_sentence_transformers.json; leave the "
                    "name out, or give a text as `prompt`",
                    folder, in_quotes(*name)));
  }
  throw UsageError(
      fmt::format("{} has no prompt {}; it has {}", folder, in_quotes(*name), fmt::join(names, ", ")));
}

std::vector<TextTokens> sentence_tokens(const SentenceModel& model, std::span<const std::string> lines,
                                        ReadLinesOptions options, const std::optional<std::string>& prompt) {
  check_sentence_model(model);
  const std::string& before = prompt ? *prompt : model.prompt;
  if (!options.seconds.empty() && !before.empty()) {
    throw UsageError(fmt::format(
        "the prompt {} is for a single text, and there is none for two; leave the second texts out, or give "
        "an empty `prompt`",
        in_quotes(before)));
  }
  if (model.lowercase || !before.empty()) {
    options.prepare = [&](const std::string& line) {
      return model.lowercase ? lower_case(before + line) : before + line;
    };
  }
  return read_lines(TextReader(model.folder, static_cast<size_t>(model.longest)), lines, options);
}

}  // namespace mh

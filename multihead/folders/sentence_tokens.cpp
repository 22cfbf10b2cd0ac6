#include "multihead/folders/sentence_tokens.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/text/cut_tokens.h"
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

int32_t tokens_of_prompt(const SentenceModel& model) {
  if (model.prompt.empty()) return 0;
  const TextReader reader(model.folder, static_cast<size_t>(model.longest));
  const auto ids = reader.read(model.lowercase ? lower_case(model.prompt) : model.prompt).ids;
  if (ids.empty()) return 0;
  // The unknown token is a special one, too.
  const bool ends = closing_tokens(reader.tokenizer()) > 0 || ids.back() == reader.tokenizer().unknown_id();
  return static_cast<int32_t>(ids.size()) - (ends ? 1 : 0);
}

std::vector<TextTokens> sentence_tokens(const SentenceModel& model, std::span<const std::string> lines,
                                        ReadLinesOptions options) {
  check_sentence_model(model);
  if (!options.seconds.empty() && !model.prompt.empty()) {
    throw UsageError(
        fmt::format("{} has a prompt for a single text, and none for two; leave the second texts out",
                    model.folder.path.string()));
  }
  if (model.lowercase || !model.prompt.empty()) {
    options.prepare = [&model](const std::string& line) {
      return model.lowercase ? lower_case(model.prompt + line) : model.prompt + line;
    };
  }
  return read_lines(TextReader(model.folder, static_cast<size_t>(model.longest)), lines, options);
}

}  // namespace mh

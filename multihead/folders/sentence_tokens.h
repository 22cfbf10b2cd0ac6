// The tokens of lines as a sentence model reads them: in lower case and behind its prompt where it has them, cut to its longest.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/folders/sentence_model.h"
#include "multihead/folders/text_tokens.h"

namespace mh {

/// A model that load_sentence_model() made is always as it should be. Throws UsageError on invalid fields.
void check_sentence_model(const SentenceModel& model);

/// What comes before texts.
struct TextPrompt {
  std::string text;
  int32_t unpooled = 0;  // tokens at the start of such a text that no pooling takes
};

/// `unpooled` is counted as sentence-transformers does: of the prompt alone, with the special tokens before it, and without the
/// one behind it.
TextPrompt text_prompt(const SentenceModel& model, std::string text);
/// The prompt of the folder that has this name, or this text of one's own; neither: the model's. Throws UsageError when both are
/// given, on a name that the folder does not have, with those that it has, and on a text that is not UTF-8.
TextPrompt chosen_prompt(const SentenceModel& model, const std::optional<std::string>& name,
                         const std::optional<std::string>& text);

/// options.prepare is the model's; prompt: what comes before each line, nothing: SentenceModel::prompt. Throws as read_lines()
/// and check_sentence_model() do, and UsageError on second texts behind a prompt.
std::vector<TextTokens> sentence_tokens(const SentenceModel& model, std::span<const std::string> lines,
                                        ReadLinesOptions options,
                                        const std::optional<std::string>& prompt = std::nullopt);

}  // namespace mh

// The tokens of lines as a sentence model reads them: in lower case and behind its prompt where it has them, cut to its longest.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/folders/sentence_model.h"
#include "multihead/folders/text_tokens.h"

namespace mh {

/// A model that load_sentence_model() made is always as it should be. Throws UsageError on invalid fields.
void check_sentence_model(const SentenceModel& model);

/// How many tokens the model's prompt has, counted as sentence-transformers does: alone, with the special tokens before it, and
/// without the one behind it.
int32_t tokens_of_prompt(const SentenceModel& model);

/// options.prepare is the model's. Throws as read_lines() and check_sentence_model() do, and UsageError on second texts for a
/// model with a prompt.
std::vector<TextTokens> sentence_tokens(const SentenceModel& model, std::span<const std::string> lines,
                                        ReadLinesOptions options);

}  // namespace mh

// Whether a tokenizer belongs to a model: the one rule for folders of every family, GGUF files and saving. With
// another model's tokenizer a text would become tokens that mean something else, and results would be wrong
// without a sign.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/folders/tokenizer_files.h"
#include "multihead/models/model.h"
#include "multihead/text/tokenizer.h"

namespace mh {

/// Whether a vocabulary has these tokens and was rounded up for the hardware's sake, so that the ids above are never used: it is a
/// multiple of 8 and has up to 127 or a fiftieth more. Phi-2 has 51,200 for 50,295 tokens, Qwen 2.5 151,936 for 151,665.
bool is_rounded_up(int64_t tokens, int64_t vocabulary);

/// Returns every reason why this tokenizer does not fit a model with this vocabulary and these special
/// tokens, one clause each. `end` and `pad` are the names of these tokens; an empty name is not checked.
///
/// It has as many tokens as the vocabulary, or fewer where that is rounded up. An encoder predicts none of them: there it may have
/// a thousandth fewer, whatever the vocabulary.
std::vector<std::string> tokenizer_mismatches(const Tokenizer& tokenizer, int32_t vocabulary,
                                              const ModelFacts& facts, const std::string& end = "</s>",
                                              const std::string& pad = "<pad>");

/// Throws FormatError that lists all mismatches and names `file`, which says the ids. special: what
/// tokenizer_config.json names, of which the model's kind decides what must be there: end, padding and unknown
/// token of a translator, with their ids; the unknown token of a causal model; of an encoder that, and the tokens
/// that it puts around a text. Nothing: there is no such file, and the usual names count as far as the tokenizer
/// has them.
void check_tokenizer(const Tokenizer& tokenizer, const std::string& file, int32_t vocabulary,
                     const ModelFacts& facts, const std::optional<SpecialTokens>& special);

}  // namespace mh

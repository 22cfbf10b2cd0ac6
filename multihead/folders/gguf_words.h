// How byte-level tokenizers of GGUF files cut text into words, which the files give by name.
#pragma once

#include <string>
#include <string_view>

#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Sets the normalizer, the pre-tokenizer and ignore_merges to what the name of tokenizer.ggml.pre stands for.
/// Throws FormatError, one line that starts with `file`: on "" and "default", which name nothing, and on a name that is
/// not known, listing those that are.
/// Returns whether texts begin with the begin-of-text token where the file does not say.
bool set_gguf_words(std::string_view name, const std::string& file, TokenizerParts& parts);

}  // namespace mh

// The tokenizer in a GGUF file, and what the file says about special tokens and chats.
#pragma once

#include <optional>

#include "multihead/io/gguf.h"
#include "multihead/text/tokenizer.h"

namespace mh {

/// Returns the tokenizer; nothing when the file has none. Byte-level byte-pair encoding is read
/// (tokenizer.ggml.model "gpt2"): the tokens, their types, the merges, and how text is cut into words, which
/// tokenizer.ggml.pre gives by name. Throws FormatError on another model or name, which it names, and on
/// tokens and merges that contradict each other.
///
/// Tokens of type "control" become special tokens, those of type "user defined" added tokens that are not
/// special; both are found in the text as they are.
std::optional<Tokenizer> gguf_tokenizer(const GgufFile& file);

}  // namespace mh

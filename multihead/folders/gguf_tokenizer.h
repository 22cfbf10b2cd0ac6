// The tokenizer in a GGUF file, and what the file says about special tokens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "multihead/io/gguf.h"
#include "multihead/text/tokenizer.h"

namespace mh {

/// Returns the tokenizer; nothing when the file has none. Two kinds are read (tokenizer.ggml.model):
///
///   gpt2    byte-level byte-pair encoding: tokens, merges, and how text is cut into words, by name
///           (gguf_words.h)
///   llama   SentencePiece's byte-pair encoding: tokens and their scores, of which the merges are made; a space
///           is U+2581, one stands before a text (add_space_prefix), and characters that are no tokens become
///           their bytes
///
/// Tokens of the types "control" and "unknown" become special tokens, those of type "user defined" added tokens
/// that are not special; all are found in the text as they are, and so are <|im_start|> and <|im_end|>, whatever their
/// type (gguf_split_markers()). add_bos_token and add_eos_token, or what
/// llama.cpp takes when they are missing, put these tokens around a text. The tokenizer can be written as
/// tokenizer.json. Throws FormatError on another kind or name, which it names, and on tokens, scores and merges
/// that contradict each other.
std::optional<Tokenizer> gguf_tokenizer(const GgufFile& file);

/// A chat's markers that the file marks as ordinary tokens, which a text would be cut into pieces of.
std::vector<std::string> gguf_split_markers(const GgufFile& file);

}  // namespace mh

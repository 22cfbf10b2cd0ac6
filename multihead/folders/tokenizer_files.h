// Reads and writes tokenizer_config.json and what config.json says of texts, for Hugging Face Transformers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/encoder_decoder_config.h"
#include "multihead/text/tokenizer.h"

namespace mh {

/// The names of the special tokens.
struct SpecialTokens {
  std::string end = "</s>";
  std::string unknown;  // empty: the file says none
  std::string pad = "<pad>";
  std::string mask;              // empty: the file says none, as of the next two
  std::string opening, closing;  // [CLS] and [SEP] of BERT, <s> and </s> of RoBERTa
};

/// Reads the names of the special tokens; missing ones keep their defaults. Throws FormatError that starts
/// with `name`.
SpecialTokens read_tokenizer_config(std::string_view json, std::string_view name);
std::string write_tokenizer_config(const Tokenizer& tokenizer, const EncoderDecoderConfig& config);

/// Returns the "prefix" of each task in task_specific_params that has one. Throws FormatError that starts with `name`.
std::map<std::string, std::string> read_task_prefixes(std::string_view json, std::string_view name);
/// Returns the special tokens that a tokenizer_config.json or a special_tokens_map.json names, by their keys: "bos_token", ...; those
/// that a chat template may write. Throws FormatError that starts with `name`.
std::map<std::string, std::string> read_named_tokens(std::string_view json, std::string_view name);
/// Returns chat_template of a tokenizer_config.json, the Jinja text that makes a prompt of messages; of a list
/// of templates the one named "default". Empty when there is none. Throws FormatError that starts with `name`.
std::string read_chat_template(std::string_view json, std::string_view name);

}  // namespace mh

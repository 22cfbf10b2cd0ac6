// Reads tokenizer.json into the parts of a tokenizer, and writes it.
#pragma once

#include <string>
#include <string_view>

#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Does not trust the file: throws FormatError, one line that starts with `file_name`, on broken JSON,
/// repeated keys, deep nesting, values of the wrong type and steps that are not supported.
TokenizerParts read_tokenizer_json(std::string_view json, std::string_view file_name);

std::string write_tokenizer_json(const TokenizerParts& parts);

}  // namespace mh

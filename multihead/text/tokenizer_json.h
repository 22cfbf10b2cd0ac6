// tokenizer.json <-> the parts of a tokenizer.
#pragma once

#include <string>
#include <string_view>

#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Never trusts the file: broken JSON, repeated keys, deep nesting, values of the wrong kind and types that
/// are not supported are FormatErrors of one line that starts with `file_name`.
TokenizerParts read_tokenizer_json(std::string_view json, std::string_view file_name);

std::string write_tokenizer_json(const TokenizerParts& parts);

}  // namespace mh

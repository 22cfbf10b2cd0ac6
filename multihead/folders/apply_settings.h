// Makes of a tokenizer.json the tokenizer that AutoTokenizer of transformers 5 makes of it and the files beside it
// (tokenizer_settings.h).
#pragma once

#include <string>
#include <vector>

#include "multihead/folders/tokenizer_settings.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Changes the parts that were read from a tokenizer.json, which messages call `file`. byte_level: the file has a step ByteLevel.
/// Returns lines for the user: steps of the file that the class replaces, keys that the class does not obey, tokens that have no
/// row in the model. Without a word where the files agree.
std::vector<std::string> apply_settings(const TokenizerSettings& settings, const std::string& file,
                                        bool byte_level, TokenizerParts& parts);

/// A line that names the keys and tokens that would make another tokenizer of these parts, which are left as `file` has them;
/// empty when there are none.
std::string unused_settings(const TokenizerSettings& settings, const std::string& file,
                            const TokenizerParts& parts);

}  // namespace mh

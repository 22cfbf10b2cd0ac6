// The steps that a class of transformers 5 has around the vocabulary and merges of a tokenizer.json (tokenizer_class.h).
#pragma once

#include <string>
#include <vector>

#include "multihead/folders/tokenizer_class.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Puts the steps of the class in the place of the file's. Returns which of them were others before, beyond what `options` asks
/// for: "normalizer", "pre_tokenizer", "decoder", "post_processor", "model". The class must fit the model (fits_class()).
std::vector<std::string> put_class_steps(TokenizerClass kind, const ClassOptions& options,
                                         TokenizerParts& parts);

}  // namespace mh

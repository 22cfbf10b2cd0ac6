// The token that stands for a missing word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/folders/model_folder.h"

namespace mh {

/// The `mask_token` of the folder, else "[MASK]" or "<mask>" if the vocabulary has it. Throws UsageError when the tokenizer has
/// none.
std::string mask_token(const ModelFolder& folder);
/// The number of that token in one of the folder's tokenizers, if it is there.
std::optional<int32_t> mask_id(const ModelFolder& folder, const Tokenizer& tokenizer);

}  // namespace mh

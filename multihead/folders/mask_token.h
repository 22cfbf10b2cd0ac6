// The token that stands for a missing word.
#pragma once

#include <string>

#include "multihead/folders/model_folder.h"

namespace mh {

/// The `mask_token` of the folder, else "[MASK]" or "<mask>" if the vocabulary has it. Throws UsageError when the tokenizer has
/// none.
std::string mask_token(const ModelFolder& folder);

}  // namespace mh

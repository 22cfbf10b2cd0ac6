// PromptCache: what a causal model has read, so that a prompt that begins with the same tokens, such as the next
// turn of a chat, is not read again from its beginning.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/nn/stack_cache.h"

namespace mh {

struct PromptCache {
  std::vector<int32_t> tokens =
      {};                      // of the prompt and of the text that continued it, as far as they were read
  StackCache keys_and_values;  // of these tokens
};

}  // namespace mh

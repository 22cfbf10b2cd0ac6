#include "multihead/text/cut_tokens.h"

#include <cstdint>
#include <vector>

namespace mh {

size_t opening_tokens(const Tokenizer& tokenizer) {
  const std::vector<int32_t> special = tokenizer.encode_ids(""), around = tokenizer.encode_ids("a");
  size_t before = 0;
  while (before < std::min(special.size(), around.size()) && special[before] == around[before]) ++before;
  return before;
}

size_t closing_tokens(const Tokenizer& tokenizer) {
  return tokenizer.encode_ids("").size() - opening_tokens(tokenizer);
}

}  // namespace mh

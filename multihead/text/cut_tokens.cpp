#include "multihead/text/cut_tokens.h"

namespace mh {

size_t opening_tokens(const Tokenizer& tokenizer) {
  const size_t special = tokenizer.encode_ids("").size();
  size_t before = 0;
  for (const auto& [begin, end] : tokenizer.encode("a").offsets) {
    if (end > begin || before == special) break;
    ++before;
  }
  return before;
}

size_t closing_tokens(const Tokenizer& tokenizer) {
  return tokenizer.encode_ids("").size() - opening_tokens(tokenizer);
}

}  // namespace mh

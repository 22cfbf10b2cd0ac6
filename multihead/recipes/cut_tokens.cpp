#include "multihead/recipes/cut_tokens.h"

namespace mh {

size_t closing_tokens(const Tokenizer& tokenizer) {
  // All special tokens but those before the text.
  const size_t special = tokenizer.encode_ids("").size();
  size_t before = 0;
  for (const auto& [begin, end] : tokenizer.encode("a").offsets) {
    if (end > begin || before == special) break;
    ++before;
  }
  return special - before;
}

}  // namespace mh

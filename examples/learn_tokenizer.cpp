// Learns a byte-pair encoding from a few lines, and takes a sentence apart and together again.
#include <cstdio>
#include <string>
#include <vector>

#include "multihead/tokenizer.h"

int main() {
  const std::vector<std::string> lines = {"the dog runs .", "the dogs run .", "a big dog ran ."};
  const mh::Tokenizer tokenizer = mh::train_bpe(lines, {.vocabulary_size = 40});
  const std::vector<int32_t> ids = tokenizer.encode_ids("the big dogs run .");
  for (const int32_t id : ids) std::printf("%d:%s ", id, tokenizer.token_of(id).c_str());
  std::printf("\n%s\n", tokenizer.decode(ids).c_str());
}

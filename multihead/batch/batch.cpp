#include "multihead/batch/batch.h"

namespace mh {

Batch::Batch(std::span<const std::vector<int32_t>> sequences) {
  for (size_t s = 0; s < sequences.size(); ++s) add(sequences[s], static_cast<int64_t>(s));
}

void Batch::add(std::span<const int32_t> tokens, int64_t sentence, std::span<const int32_t> types_of_tokens) {
  if (!types_of_tokens.empty()) {
    types.resize(ids.size());  // those before have type 0
    types.insert(types.end(), types_of_tokens.begin(), types_of_tokens.end());
  }
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  if (!types.empty()) types.resize(ids.size());
  ragged.add(static_cast<int32_t>(tokens.size()));
  sentences.push_back(sentence);
}

void Batch::clear() {
  ids.clear();
  types.clear();
  ragged.clear();
  sentences.clear();
}

}  // namespace mh

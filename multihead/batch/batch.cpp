#include "multihead/batch/batch.h"

namespace mh {

Batch::Batch(std::span<const std::vector<int32_t>> sequences) {
  for (size_t s = 0; s < sequences.size(); ++s) add(sequences[s], static_cast<int64_t>(s));
}

void Batch::add(std::span<const int32_t> tokens, int64_t sentence) {
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  ragged.add(static_cast<int32_t>(tokens.size()));
  sentences.push_back(sentence);
}

void Batch::clear() {
  ids.clear();
  ragged.clear();
  sentences.clear();
}

}  // namespace mh

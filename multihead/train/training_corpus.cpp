#include "multihead/train/training_corpus.h"

#include "multihead/base/fingerprint.h"

namespace mh {

void gather(const TrainingCorpus& corpus, std::span<const int64_t> pairs, int32_t start_id, Batch& source,
            TeacherForced& target) {
  source.clear();
  target.clear();
  for (const int64_t pair : pairs) {
    const auto at = static_cast<size_t>(pair);
    source.add(corpus.tokens.source[at], corpus.lines[at]);
    target.add(corpus.tokens.target[at], corpus.lines[at], {.start_id = start_id});
  }
}

int64_t target_tokens(const TrainingCorpus& corpus, std::span<const int64_t> pairs) {
  int64_t sum = 0;
  for (const int64_t pair : pairs)
    sum += static_cast<int64_t>(corpus.tokens.target[static_cast<size_t>(pair)].size());
  return sum;
}

std::string fingerprint(const TrainingCorpus& corpus) {
  Fingerprint all;
  for (size_t i = 0; i < corpus.tokens.size(); ++i) {
    all.add(static_cast<uint64_t>(corpus.lines[i]));
    for (const auto* side : {&corpus.tokens.source[i], &corpus.tokens.target[i]}) {
      all.add(uint64_t{side->size()});
      for (const int32_t id : *side) all.add(uint64_t{static_cast<uint32_t>(id)});
    }
  }
  return all.digits();
}

}  // namespace mh

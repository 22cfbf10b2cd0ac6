#include "multihead/train/training_batch.h"

#include "multihead/base/error.h"
#include "multihead/base/fingerprint.h"

namespace mh {

void TrainingBatch::assign(const TrainingCorpus& corpus, std::span<const int32_t> pairs, int32_t start_id) {
  source.clear();
  target_in.clear();
  target_out.clear();
  for (const int32_t pair : pairs) {
    const auto at = static_cast<size_t>(pair);
    const std::vector<int32_t>& target = corpus.tokens.target[at];
    MH_ASSERT(!target.empty() && !corpus.tokens.source[at].empty());
    source.add(corpus.tokens.source[at], corpus.lines[at]);
    target_in.ids.push_back(start_id);
    target_in.ids.insert(target_in.ids.end(), target.begin(), target.end() - 1);
    target_in.ragged.add(static_cast<int32_t>(target.size()));
    target_in.sentence_ids.push_back(corpus.lines[at]);
    target_out.insert(target_out.end(), target.begin(), target.end());
  }
}

int64_t target_tokens(const TrainingCorpus& corpus, std::span<const int32_t> pairs) {
  int64_t sum = 0;
  for (const int32_t pair : pairs)
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

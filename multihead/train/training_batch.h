// Sentence pairs of a tokenised corpus as the model reads them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/data/token_batches.h"
#include "multihead/nn/context.h"

namespace mh {

/// What is trained on: pairs with their line numbers in the text, from 1 (pairs beyond the length limit are
/// not there). Dropout is keyed by the line, so leaving out a line changes nothing for the others.
struct TrainingCorpus {
  ParallelTokens tokens;
  std::vector<int64_t> lines;
};

/// One batch: memory that is used again and again. The decoder reads the start token and the target up to its
/// last but one token, and learns to say the target.
struct TrainingBatch {
  TokenSequences source;
  TokenSequences target_in;
  std::vector<int32_t> target_out;  // [N target]

  void assign(const TrainingCorpus& corpus, std::span<const int32_t> pairs, int32_t start_id);
  Sequences source_sequences() const { return {source.ids, &source.ragged, source.sentence_ids}; }
  Sequences target_sequences() const { return {target_in.ids, &target_in.ragged, target_in.sentence_ids}; }
};

/// Target tokens of these pairs, end tokens included.
int64_t target_tokens(const TrainingCorpus& corpus, std::span<const int32_t> pairs);

/// Tells whether two corpora are the same: 16 hexadecimal digits of FNV-1a over lengths, ids and line
/// numbers.
std::string fingerprint(const TrainingCorpus& corpus);

}  // namespace mh

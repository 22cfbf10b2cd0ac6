// TrainingCorpus: the sentence pairs to train on. gather() makes batches of them for an encoder-decoder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/batch/teacher_forced.h"
#include "multihead/data/parallel_tokens.h"

namespace mh {

/// Pairs with their line numbers in the text, from 1; pairs that are too long are left out. The dropout of
/// a pair depends on its line number, so leaving out a line changes nothing for the others.
struct TrainingCorpus {
  ParallelTokens tokens;
  std::vector<int64_t> lines;
};

/// Fills `source` and `target` with these pairs, numbered by their lines; the memory of the batches is used
/// again.
void gather(const TrainingCorpus& corpus, std::span<const int64_t> pairs, int32_t start_id, Batch& source,
            TeacherForced& target);

/// Returns the number of target tokens of these pairs, end tokens included.
int64_t target_tokens(const TrainingCorpus& corpus, std::span<const int64_t> pairs);

/// Returns a fingerprint that tells whether two corpora are the same: 16 hexadecimal digits, FNV-1a over
/// lengths, ids and line numbers.
std::string fingerprint(const TrainingCorpus& corpus);

}  // namespace mh

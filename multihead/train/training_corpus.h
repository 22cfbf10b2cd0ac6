// The sentence pairs of a training, and batches of them as an encoder-decoder reads them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/batch/teacher_forced.h"
#include "multihead/data/parallel_tokens.h"

namespace mh {

/// What is trained on: pairs with their line numbers in the text, from 1 (pairs beyond the length limit are
/// not there). Dropout is keyed by the line, so leaving out a line changes nothing for the others.
struct TrainingCorpus {
  ParallelTokens tokens;
  std::vector<int64_t> lines;
};

/// Puts these pairs, numbered by their lines, in place of what the batches held; their memory is used again.
void gather(const TrainingCorpus& corpus, std::span<const int64_t> pairs, int32_t start_id, Batch& source,
            TeacherForced& target);

/// Target tokens of these pairs, end tokens included.
int64_t target_tokens(const TrainingCorpus& corpus, std::span<const int64_t> pairs);

/// Tells whether two corpora are the same: 16 hexadecimal digits of FNV-1a over lengths, ids and line
/// numbers.
std::string fingerprint(const TrainingCorpus& corpus);

}  // namespace mh

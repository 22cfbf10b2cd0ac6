// Sentences as numbers, and which of them go into one update together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "multihead/base/ragged.h"

namespace mh {

/// Token ids of several sentences one after the other, nothing padded. ids.size() == ragged.rows().
struct TokenSequences {
  std::vector<int32_t> ids;           // [N]
  Ragged ragged;                      // B sequences
  std::vector<int64_t> sentence_ids;  // [B]: which sentence of the corpus each is (dropout is keyed by it)

  void add(std::span<const int32_t> tokens, int64_t sentence_id);
  void clear();
};

/// A tokenised corpus; each sentence ends with its end token. REQUIRES: equal sizes.
struct ParallelTokens {
  std::vector<std::vector<int32_t>> source, target;
  size_t size() const { return source.size(); }
};

struct BatchOptions {
  enum class Count {
    target_tokens,  // the sum of the target lengths, end tokens included
    padded  // sentences times the longest of them on either side, as frameworks that pad count; the target
            // is one longer there, for its start token
  };
  int64_t max_tokens = 4096;  // at most so many in a batch, unless one sentence alone has more
  Count count = Count::target_tokens;
  uint64_t seed = 1;
};

/// The batches of one epoch, each a list of sentence numbers; every sentence is in exactly one. Sentences of
/// like length go together, equal lengths in random order, and the batches come in random order: a pure
/// function of (corpus lengths, options, epoch). Throws UsageError when max_tokens < 1.
std::vector<std::vector<int32_t>> plan_batches(const ParallelTokens& corpus, const BatchOptions& options,
                                               uint64_t epoch);

/// The sentences with more than `limit` tokens (end token included) on either side, to report and leave out.
std::vector<int32_t> longer_than(const ParallelTokens& corpus, int64_t limit);

}  // namespace mh

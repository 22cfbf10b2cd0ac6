// Sentences of like length together, so that a batch's sentences end at about the same time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mh {

/// Indices of sequences, a vector for each batch: the longest first (ties: in order), as many as fit into
/// max_tokens, at least one. Sequences of length 0 are in no batch. REQUIRES: max_tokens >= 1.
std::vector<std::vector<int64_t>> batches_by_length(std::span<const int64_t> lengths, int64_t max_tokens);

/// One batch of token sequences, laid end to end.
struct TokenBatch {
  std::vector<int32_t> ids;
  std::vector<int32_t> lengths;

  void add(std::span<const int32_t> tokens) {
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    lengths.push_back(static_cast<int32_t>(tokens.size()));
  }
};

}  // namespace mh

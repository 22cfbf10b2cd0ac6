// Sequences of token ids laid end to end, nothing padded: what the models read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/base/ragged.h"

namespace mh {

/// Token ids of a ragged batch; ids.size() == ragged->rows(). `sentences` number the sequences in the corpus:
/// dropout depends on them, not on the place in the batch.
struct Sequences {
  std::span<const int32_t> ids;  // [N]
  const Ragged* ragged = nullptr;
  std::span<const int64_t> sentences;  // [S]; may be empty without dropout
};

/// Owns what `Sequences` look at.
struct Batch {
  std::vector<int32_t> ids;        // [N]
  Ragged ragged;                   // S sequences, N rows
  std::vector<int64_t> sentences;  // [S]: which sentence of the corpus each is

  Batch() = default;
  /// All of them, numbered from 0.
  explicit Batch(std::span<const std::vector<int32_t>> sequences);
  explicit Batch(const std::vector<std::vector<int32_t>>& sequences) : Batch(std::span(sequences)) {}

  void add(std::span<const int32_t> tokens, int64_t sentence);
  /// Keeps the memory for what comes next.
  void clear();
  /// Valid until the batch changes or moves.
  Sequences view() const { return {.ids = ids, .ragged = &ragged, .sentences = sentences}; }
};

}  // namespace mh

// Batch: sequences of token ids laid end to end. Every model reads its input in this form. Nothing is
// padded, so no work is spent on padding and no mask is needed for it. The sequences 5 7 2 and 9 2 become
//
//   ids      5 7 2 9 2      [N], N rows in all
//   offsets  0 3 5          [S + 1], S sequences: sequence s is rows offsets[s] to offsets[s + 1] - 1
//
// and a model's states for them are a matrix [N, d_model] with the same offsets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/base/ragged.h"

namespace mh {

/// A view of a batch; ids.size() == ragged->rows(). `sentences` are the numbers of the sequences in the
/// corpus: dropout depends on them and not on the place in the batch.
struct Sequences {
  std::span<const int32_t> ids;  // [N]
  const Ragged* ragged = nullptr;
  std::span<const int64_t> sentences;   // [S]; may be empty without dropout
  std::span<const int32_t> types = {};  // [N]: the type of each token (nn/embedding.h); empty: all of type 0
};

/// A batch that owns its ids; view() gives the Sequences.
struct Batch {
  std::vector<int32_t> ids;        // [N]
  std::vector<int32_t> types;      // [N]; empty: all of type 0
  Ragged ragged;                   // S sequences, N rows
  std::vector<int64_t> sentences;  // [S]: which sentence of the corpus each is

  Batch() = default;
  /// All sequences, numbered from 0.
  explicit Batch(std::span<const std::vector<int32_t>> sequences);
  explicit Batch(const std::vector<std::vector<int32_t>>& sequences) : Batch(std::span(sequences)) {}

  /// types_of_tokens: as many as tokens, or none where all have type 0.
  void add(std::span<const int32_t> tokens, int64_t sentence, std::span<const int32_t> types_of_tokens = {});
  /// Empties the batch and keeps its memory.
  void clear();
  /// Valid until the batch changes or moves.
  Sequences view() const { return {.ids = ids, .ragged = &ragged, .sentences = sentences, .types = types}; }
};

}  // namespace mh

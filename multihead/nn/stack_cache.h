// The keys and values of what a stack has read: what cached decoding carries from step to step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/base/aligned.h"
#include "multihead/base/ragged.h"
#include "multihead/tensor/arena.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// New rows of a cache's sequences.
struct NewRows {
  const Ragged* rows = nullptr;  // how many of each sequence, in the order in which they come
  std::span<const int32_t> parents =
      {};  // sequence i continues the cache's sequence parents[i]; empty: itself
  std::span<const int32_t> sources = {};  // with a memory: its sequence that i reads, rising
};

/// A value: a copy is independent of the original. A sequence is a list of row numbers, so that selecting
/// sequences rewrites numbers and copies no keys.
class StackCache {
 public:
  int32_t sequences() const { return lengths_.sequences(); }
  /// Rows that sequence s has read.
  int32_t length(int32_t s) const { return lengths_.length(s); }

  /// Sequence i becomes a copy of what sequence chosen[i] is: reorders, repeats and drops sequences. Throws
  /// UsageError on a number that is no sequence.
  void select(std::span<const int32_t> chosen);
  /// Forgets all but the first `length` rows of each sequence.
  void cut(int32_t length);
  /// Where these rows will stand in their sequences: [N], in the arena's memory.
  std::span<const int32_t> next_positions(const NewRows& added, Arena& memory) const;

 private:
  friend class Stack;
  friend class StackLayer;

  struct Layer {
    AlignedBuffer<float> self;  // [rows ever written, keys | values]; grows
    int64_t width = 0;          // of a row of `self`
    Tensor memory;              // [Nk, keys | values] of the memory
  };
  /// Begins anew for this many layers; keeps memory.
  void start(size_t layers, std::span<const int32_t> memory_offsets);
  /// Gives the sequences their new rows; a cache without sequences gets its first.
  void append(const NewRows& added);
  /// Rows that sequence i of `added` has read before.
  int32_t read_before(const NewRows& added, int32_t i) const;

  std::vector<Layer> layers_;
  std::vector<int32_t> memory_offsets_;  // [memory's sequences + 1]; empty without one
  int32_t rows_written_ = 0;             // in each layer's `self`
  Ragged lengths_;                       // of each sequence, in paths_
  std::vector<int32_t> paths_;           // row numbers of all sequences, oldest first

  // Of the step in work; kept here so that steps allocate nothing.
  std::vector<int32_t> next_paths_;
  Ragged next_lengths_;
  std::vector<int32_t> positions_;  // of the new rows in their sequences
  Ragged new_rows_;                 // of each sequence
  Ragged by_source_;                // new rows of one source together
  bool in_place_ = false;           // paths_ are all rows written, in order
};

}  // namespace mh

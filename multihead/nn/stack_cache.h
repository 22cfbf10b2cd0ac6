// StackCache: the key/value cache of a stack. It keeps the keys and values of all rows that were read, so
// that each step of decoding runs new rows only. Where it keeps them as bfloat16, all queries meet the rounded ones, also
// those of the rows that are new.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/base/precision.h"
#include "multihead/base/ragged.h"
#include "multihead/nn/cached_rows.h"
#include "multihead/nn/sites.h"
#include "multihead/tensor/arena.h"

namespace mh {

/// New rows for the sequences of a cache.
struct NewRows {
  const Ragged* rows = nullptr;  // how many new rows each sequence has, in order
  /// Sequence i continues sequence parents[i] of the cache; empty: sequence i.
  std::span<const int32_t> parents = {};
  /// Sequence i continues source sources[i]: a sequence of the memory, or without one the first rows of sequence sources[i];
  /// rising. Empty, which is without a memory only: each sequence is its own.
  std::span<const int32_t> sources = {};
};

/// A cache is a value: a copy is independent of the original. A sequence is a list of row numbers, so that
/// reordering hypotheses rewrites these numbers and copies no keys.
class StackCache {
 public:
  explicit StackCache(CacheType type = CacheType::kFloat32) : type_(type) {}

  CacheType type() const { return type_; }
  int32_t sequences() const { return lengths_.sequences(); }
  /// How many rows sequence s has read.
  int32_t length(int32_t s) const { return lengths_.length(s); }

  /// Makes sequence i what sequence chosen[i] was; so it reorders, repeats or drops sequences. Throws
  /// UsageError when there is no such sequence.
  void select(std::span<const int32_t> chosen);
  /// Forgets all but the first `length` rows of each sequence.
  void cut(int32_t length);
  /// The places of the rows that were read last; those of one source are one sequence, also where it has none any more.
  RowPlaces new_places() const { return {.offsets = by_source_.offsets(), .positions = positions_}; }
  /// Returns the positions that these new rows will have in their sequences: [N], in the arena's memory.
  std::span<const int32_t> next_positions(const NewRows& added, Arena& memory) const;

 private:
  friend class Stack;
  friend class StackLayer;

  struct Layer {
    CachedRows self;    // all rows ever written
    CachedRows memory;  // of the memory
  };
  /// Empties the cache for this many layers; its memory is used again.
  void start(size_t layers, std::span<const int32_t> memory_offsets);
  /// Appends the new rows to the sequences; an empty cache gets its first sequences.
  void append(const NewRows& added);
  /// How many rows sequence i of `added` has read before.
  int32_t read_before(const NewRows& added, int32_t i) const;

  CacheType type_;
  std::vector<Layer> layers_;
  std::vector<int32_t> memory_offsets_;  // [memory's sequences + 1]; empty without one
  int32_t sources_ = 0;                  // how many the new rows may continue
  int32_t rows_written_ = 0;             // in each layer's `self`
  Ragged lengths_;                       // of each sequence, in paths_
  std::vector<int32_t> paths_;           // row numbers of all sequences, oldest first

  // For the current step; members so that steps allocate nothing.
  std::vector<int32_t> next_paths_;
  Ragged next_lengths_;
  std::vector<int32_t> positions_;  // of the new rows in their sequences
  Ragged new_rows_;                 // of each sequence
  Ragged by_source_;                // new rows of one source together
  bool in_place_ = false;           // paths_ are all rows written, in order
};

}  // namespace mh

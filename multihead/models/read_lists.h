// Lists of token sequences that a model reads batch by batch: sources, and maybe their translations, which a decoder
// reads with teacher forcing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/batch/plan_batches.h"
#include "multihead/batch/teacher_forced.h"
#include "multihead/models/model.h"
#include "multihead/nn/list_sites.h"

namespace mh {

struct TokenLists {
  std::span<const std::vector<int32_t>> sources;       // with their end tokens
  std::span<const std::vector<int32_t>> targets = {};  // without; empty: only sources are read
  /// None for a source whose tokens are all of type 0; empty: all are so.
  std::span<const std::vector<int32_t>> source_types = {};
};

struct ListBatch {
  std::span<const int64_t> numbers;  // of the texts in their lists
  const Batch& source;
  const TeacherForced& target;
  const ListOffsets& offsets;  // of the whole lists
};

/// Calls visit() for each batch. sites: who is called while the model reads, or null. Throws UsageError on unequal
/// numbers of sources and targets, on sites that the model does not have, an empty source or ids outside of the
/// vocabulary, ShapeError on a sequence longer than max_positions.
void read_lists(const Model& model, const TokenLists& lists, const Sites* sites, const BatchOptions& plan,
                const std::function<void(const ListBatch&)>& visit);

}  // namespace mh

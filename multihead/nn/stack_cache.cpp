#include "multihead/nn/stack_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"

namespace mh {

void StackCache::select(std::span<const int32_t> chosen) {
  next_paths_.clear();
  next_lengths_.clear();
  for (const int32_t s : chosen) {
    if (s < 0 || s >= sequences())
      throw UsageError(fmt::format("sequence {} of a cache that has {}; expected 0 to {}", s, sequences(),
                                   sequences() - 1));
    next_paths_.insert(next_paths_.end(), paths_.begin() + lengths_.begin(s),
                       paths_.begin() + lengths_.end(s));
    next_lengths_.add(lengths_.length(s));
  }
  paths_.swap(next_paths_);
  std::swap(lengths_, next_lengths_);
}

void StackCache::cut(int32_t length) {
  if (length < 0)
    throw UsageError(fmt::format("a cache cannot be cut to {} rows; expected at least 0", length));
  next_paths_.clear();
  next_lengths_.clear();
  for (int32_t s = 0; s < sequences(); ++s) {
    const int32_t kept = std::min(length, lengths_.length(s));
    const auto begin = paths_.begin() + lengths_.begin(s);
    next_paths_.insert(next_paths_.end(), begin, begin + kept);
    next_lengths_.add(kept);
  }
  paths_.swap(next_paths_);
  std::swap(lengths_, next_lengths_);
  // Rows that no sequence has any more are written over, so that a cache that is cut and read on stays small.
  const auto last = std::max_element(paths_.begin(), paths_.end());
  rows_written_ = last == paths_.end() ? 0 : *last + 1;
}

void StackCache::start(size_t layers, std::span<const int32_t> memory_offsets) {
  layers_.resize(layers);
  memory_offsets_.assign(memory_offsets.begin(), memory_offsets.end());
  sources_ = static_cast<int32_t>(memory_offsets_.size()) - (memory_offsets_.empty() ? 0 : 1);
  rows_written_ = 0;
  lengths_.clear();
  paths_.clear();
}

int32_t StackCache::read_before(const NewRows& added, int32_t i) const {
  if (sequences() == 0) return 0;
  return lengths_.length(added.parents.empty() ? i : added.parents[static_cast<size_t>(i)]);
}

std::span<const int32_t> StackCache::next_positions(const NewRows& added, Arena& memory) const {
  const Ragged& rows = *added.rows;
  const std::span<int32_t> positions = memory.array<int32_t>(rows.rows());
  for (int32_t i = 0; i < rows.sequences(); ++i) {
    const int32_t read = read_before(added, i);
    for (int32_t j = 0; j < rows.length(i); ++j) positions[static_cast<size_t>(rows.begin(i) + j)] = read + j;
  }
  return positions;
}

void StackCache::append(const NewRows& added) {
  const Ragged& rows = *added.rows;
  const std::span<const int32_t> parents = added.parents, sources = added.sources;
  const bool first = lengths_.sequences() == 0;
  const int32_t count = rows.sequences();
  MH_ASSERT(first || (parents.empty() ? count == sequences() : parents.size() == static_cast<size_t>(count)));
  next_paths_.clear();
  next_lengths_.clear();
  positions_.clear();
  for (int32_t i = 0; i < count; ++i) {
    const int32_t read = read_before(added, i);
    if (!first) {
      const int32_t parent = parents.empty() ? i : parents[static_cast<size_t>(i)];
      MH_ASSERT(0 <= parent && parent < sequences());
      const auto begin = paths_.begin() + lengths_.begin(parent);
      next_paths_.insert(next_paths_.end(), begin, begin + read);
    }
    for (int32_t j = 0; j < rows.length(i); ++j) {
      next_paths_.push_back(rows_written_ + rows.begin(i) + j);
      positions_.push_back(read + j);
    }
    next_lengths_.add(read + rows.length(i));
  }
  paths_.swap(next_paths_);
  std::swap(lengths_, next_lengths_);
  new_rows_ = rows;

  in_place_ = static_cast<int64_t>(paths_.size()) == int64_t{rows_written_} + rows.rows();
  for (size_t i = 0; in_place_ && i < paths_.size(); ++i) in_place_ = paths_[i] == static_cast<int32_t>(i);

  if (sources.empty()) {
    MH_ASSERT(memory_offsets_.empty());
    by_source_ = rows;
    sources_ = count;
  } else {
    by_source_.clear();
    MH_ASSERT(sources.size() == static_cast<size_t>(count));
    int32_t at = 0;
    for (int32_t s = 0; s < sources_; ++s) {
      const int32_t begin = at;
      while (at < count && sources[static_cast<size_t>(at)] == s) ++at;
      by_source_.add(rows.begin(at) - rows.begin(begin));
    }
    MH_ASSERT(at == count);  // sources rise and exist
  }

  for (Layer& layer : layers_) layer.self.make_room(int64_t{rows_written_} + rows.rows(), rows_written_);
}

}  // namespace mh

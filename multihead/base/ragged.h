// Where each sequence of a ragged batch begins: rows [offsets[s], offsets[s+1]) are sequence s. Nothing is
// padded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mh {

class Ragged {
 public:
  /// No sequences.
  Ragged() : offsets_{0} {}
  /// One sequence for each length.
  static Ragged from_lengths(std::span<const int32_t> lengths);

  /// Throws ShapeError on a negative length, or more than 2^31 - 1 rows in all.
  void add(int32_t length);
  void clear() { offsets_.assign(1, 0); }

  int32_t sequences() const { return static_cast<int32_t>(offsets_.size()) - 1; }
  int32_t rows() const { return offsets_.back(); }
  int32_t begin(int32_t s) const { return offsets_[static_cast<size_t>(s)]; }
  int32_t end(int32_t s) const { return offsets_[static_cast<size_t>(s) + 1]; }
  int32_t length(int32_t s) const { return end(s) - begin(s); }
  int32_t longest() const;
  /// [sequences + 1], first 0, never falling.
  std::span<const int32_t> offsets() const { return offsets_; }

  bool operator==(const Ragged&) const = default;

 private:
  std::vector<int32_t> offsets_;
};

}  // namespace mh

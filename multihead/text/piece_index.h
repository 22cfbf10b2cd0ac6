// PieceIndex: finds the pieces of a vocabulary that a text starts with, byte by byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mh {

/// The pieces in the order of their bytes. Walking a text narrows the range of those that start with what was
/// walked, by bisection: no memory beyond the pieces themselves.
class PieceIndex {
 public:
  explicit PieceIndex(const std::vector<std::pair<std::string, int32_t>>& pieces);

  /// Pieces [first, last) that start with the `depth` bytes walked.
  struct Walk {
    uint32_t first;
    uint32_t last;
    size_t depth;
    bool over() const { return first == last; }
  };
  Walk start() const { return {0, static_cast<uint32_t>(ids_.size()), 0}; }
  /// Walks on by one byte.
  Walk next(const Walk& walk, char byte) const;
  Walk next(Walk walk, std::string_view bytes) const {
    for (const char byte : bytes) walk = next(walk, byte);
    return walk;
  }
  /// The id of the piece that is exactly what was walked; -1: none.
  int32_t id(const Walk& walk) const {
    return !walk.over() && length(walk.first) == walk.depth ? ids_[walk.first] : -1;
  }

 private:
  size_t length(uint32_t piece) const { return begins_[piece + 1] - begins_[piece]; }
  /// The byte of a piece behind so many; -1: it ends there.
  int byte_behind(uint32_t piece, size_t depth) const {
    if (depth < sizeof(uint64_t)) {
      // Most walks end here: one number from memory in place of two. A byte of 0 may be the end.
      const int byte = static_cast<int>(heads_[piece] >> (56 - 8 * depth) & 255);
      if (byte != 0) return byte;
    }
    return length(piece) == depth ? -1 : static_cast<unsigned char>(bytes_[begins_[piece] + depth]);
  }
  /// The first piece of the walk whose next byte is at least `least` (0 … 256).
  uint32_t bound(const Walk& walk, int least) const;

  std::string bytes_;            // of all pieces, in order
  std::vector<size_t> begins_;   // where each starts, and the end
  std::vector<uint64_t> heads_;  // the first eight bytes of each, the first one highest
  std::vector<int32_t> ids_;
  std::array<uint32_t, 257> by_first_byte_;  // the first piece whose first byte is at least this
};

}  // namespace mh

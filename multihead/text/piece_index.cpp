#include "multihead/text/piece_index.h"

#include <algorithm>

namespace mh {

namespace {

/// The first one highest; zeros behind the end.
uint64_t first_eight_bytes(std::string_view text) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < sizeof bytes; ++i)
    bytes = bytes << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0u);
  return bytes;
}

}  // namespace

PieceIndex::PieceIndex(const std::vector<std::pair<std::string, int32_t>>& pieces) {
  struct Place {
    uint64_t head;
    uint32_t piece;
  };
  std::vector<Place> order(pieces.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = {first_eight_bytes(pieces[i].first), i};
  std::sort(order.begin(), order.end(), [&](const Place& a, const Place& b) {
    return a.head != b.head ? a.head < b.head : pieces[a.piece].first < pieces[b.piece].first;
  });
  begins_.reserve(pieces.size() + 1);
  heads_.reserve(pieces.size());
  ids_.reserve(pieces.size());
  for (const auto& [head, i] : order) {
    begins_.push_back(bytes_.size());
    heads_.push_back(head);
    bytes_ += pieces[i].first;
    ids_.push_back(pieces[i].second);
  }
  begins_.push_back(bytes_.size());
  const Walk whole = start();
  for (int byte = 0; byte <= 256; ++byte) by_first_byte_[byte] = bound(whole, byte);
}

uint32_t PieceIndex::bound(const Walk& walk, int least) const {
  uint32_t first = walk.first;
  uint32_t last = walk.last;
  while (first < last) {
    const uint32_t middle = first + (last - first) / 2;
    if (byte_behind(middle, walk.depth) < least) {  // what was walked comes before all that goes on
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

PieceIndex::Walk PieceIndex::next(const Walk& walk, char c) const {
  const int byte = static_cast<unsigned char>(c);
  if (walk.depth == 0) return {by_first_byte_[byte], by_first_byte_[byte + 1], 1};
  const uint32_t first = bound(walk, byte);
  return {first, bound({first, walk.last, walk.depth}, byte + 1), walk.depth + 1};
}

}  // namespace mh

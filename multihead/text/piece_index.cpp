#include "multihead/text/piece_index.h"

#include <algorithm>
#include <numeric>

namespace mh {

PieceIndex::PieceIndex(const std::vector<std::pair<std::string, int32_t>>& pieces) {
  std::vector<uint32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return pieces[a].first < pieces[b].first; });
  begins_.reserve(pieces.size() + 1);
  ids_.reserve(pieces.size());
  for (const uint32_t i : order) {
    begins_.push_back(bytes_.size());
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
    const bool ended = length(middle) == walk.depth;  // what was walked comes before all that goes on
    const int byte = ended ? -1 : static_cast<unsigned char>(bytes_[begins_[middle] + walk.depth]);
    if (byte < least) {
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

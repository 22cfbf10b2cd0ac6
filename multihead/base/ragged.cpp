#include "multihead/base/ragged.h"

#include <algorithm>
#include <limits>
#include <string>

#include "multihead/base/error.h"

namespace mh {

Ragged Ragged::from_lengths(std::span<const int32_t> lengths) {
  Ragged ragged;
  for (int32_t length : lengths) ragged.add(length);
  return ragged;
}

void Ragged::add(int32_t length) {
  if (length < 0 || rows() > std::numeric_limits<int32_t>::max() - length) {
    throw ShapeError("a sequence of " + std::to_string(length) + " rows after " + std::to_string(rows()) +
                     "; lengths are 0 or more, and all rows together fewer than 2^31");
  }
  offsets_.push_back(rows() + length);
}

int32_t Ragged::longest() const {
  int32_t longest = 0;
  for (int32_t s = 0; s < sequences(); ++s) longest = std::max(longest, length(s));
  return longest;
}

}  // namespace mh

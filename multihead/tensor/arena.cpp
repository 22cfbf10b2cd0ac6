#include "multihead/tensor/arena.h"

#include <algorithm>

#ifndef MULTIHEAD_ARENA_MIB
#define MULTIHEAD_ARENA_MIB 64
#endif

namespace mh {

void* Arena::allocate(size_t bytes) {
  // Large, so that little is lost at the ends of blocks; pages that are never touched cost nothing.
  constexpr size_t kBlock = size_t{MULTIHEAD_ARENA_MIB} << 20;
  bytes = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  while (block_ < blocks_.size() && used_ + bytes > static_cast<size_t>(blocks_[block_].size())) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    blocks_.emplace_back(static_cast<int64_t>(std::max(bytes, kBlock)));
    used_ = 0;
  }
  void* p = blocks_[block_].data() + used_;
  used_ += bytes;
  in_use_ += bytes;
  return p;
}

size_t Arena::capacity() const {
  size_t total = 0;
  for (const auto& block : blocks_) total += static_cast<size_t>(block.size());
  return total;
}

}  // namespace mh

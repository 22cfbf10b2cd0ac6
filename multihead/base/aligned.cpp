#include "multihead/base/aligned.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mh {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

std::align_val_t alignment(size_t bytes) {
  return std::align_val_t{bytes < kHugePage ? kCacheLine : kHugePage};
}

}  // namespace

std::byte* allocate_aligned(size_t bytes) {
  void* memory = ::operator new(bytes, alignment(bytes));
#if defined(__linux__)
  // Where it is refused, pages stay small: nothing else changes.
  if (bytes >= kHugePage) ::madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return reinterpret_cast<std::byte*>(memory);
}

void free_aligned(std::byte* memory, size_t bytes) {
  ::operator delete(memory, alignment(bytes));
}

}  // namespace mh

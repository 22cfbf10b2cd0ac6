#include "multihead/base/aligned.h"

#include "multihead/base/platform.h"

namespace mh {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

std::align_val_t alignment(size_t bytes) {
  return std::align_val_t{bytes < kHugePage ? kCacheLine : kHugePage};
}

}  // namespace

std::byte* allocate_aligned(size_t bytes) {
  void* memory = ::operator new(bytes, alignment(bytes));
  if (bytes >= kHugePage) ask_for_huge_pages(memory, bytes / kHugePage * kHugePage);
  return reinterpret_cast<std::byte*>(memory);
}

void free_aligned(std::byte* memory, size_t bytes) {
  ::operator delete(memory, alignment(bytes));
}

}  // namespace mh

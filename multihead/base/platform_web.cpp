#include <cerrno>

#include "multihead/base/platform.h"

namespace mh {

bool has_threads() {
  return false;
}

int available_processors() {
  return 1;
}

void call_in_forked_child(void (*)()) {}

void ask_for_huge_pages(void*, size_t) {}

// Files are in memory there, as a whole.
void release_mapped(const std::byte*, size_t) {}

int exchange_folders(const std::filesystem::path&, const std::filesystem::path&) {
  return ENOTSUP;
}

}  // namespace mh

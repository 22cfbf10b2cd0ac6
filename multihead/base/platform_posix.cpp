#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "multihead/base/platform.h"

namespace mh {

bool has_threads() {
  return true;
}

int available_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

void call_in_forked_child(void (*run)()) {
  ::pthread_atfork(nullptr, nullptr, run);
}

void ask_for_huge_pages(void* memory, size_t bytes) {
  ::madvise(memory, bytes, MADV_HUGEPAGE);
}

void release_mapped(const std::byte* begin, size_t bytes) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (address + page - 1) / page * page, last = (address + bytes) / page * page;
  // Where it cannot be done, the memory stays taken: nothing else changes.
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

int exchange_folders(const std::filesystem::path& a, const std::filesystem::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0 ? 0 : errno;
}

}  // namespace mh

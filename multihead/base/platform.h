// What the system under the library has: processors, pages of memory, names that change in one step. platform_posix.cpp is for
// Linux, platform_web.cpp for WebAssembly in a browser, where there is one thread and neither processes nor mapped files.
#pragma once

#include <cstddef>
#include <filesystem>

namespace mh {

/// Whether a thread can be started. Where not, a parallel_for runs all its tasks on the caller.
bool has_threads();
/// The processors that this process may use, at least 1.
int available_processors();
/// Calls `run` in each child that fork() makes from now on.
void call_in_forked_child(void (*run)());

/// Asks for pages of 2 MiB under this memory. Where they are refused nothing else changes.
void ask_for_huge_pages(void* memory, size_t bytes);
/// Lets the memory go that a part of a mapped file takes, as far as it is whole pages; they are read again when
/// they are next needed. REQUIRES: the bytes are mapped from a file, and nothing was written there.
void release_mapped(const std::byte* begin, size_t bytes);

/// Exchanges the names of two folders in one step. Returns 0 or the errno.
int exchange_folders(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace mh

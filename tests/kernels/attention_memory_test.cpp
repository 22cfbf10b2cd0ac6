// When memory runs out in the middle of a call, the call throws; it does not wait forever.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "attention_case.h"
#include "multihead/base/thread_pool.h"

namespace {

std::atomic<int> allocations_left{-1};  // until one fails; negative: none will

}  // namespace

// The kernels' own memory (AlignedBuffer) is asked for here, in the whole program.
void* operator new(size_t size, std::align_val_t alignment) {
  if (allocations_left.load() >= 0 && allocations_left.fetch_sub(1) == 0) throw std::bad_alloc();
  const size_t unit = static_cast<size_t>(alignment);
  // A multiple of the alignment: the C standard asks for that, and sanitizers check it.
  void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace mh {
namespace {

TEST(AttentionMemory, ATaskWithoutMemoryEndsTheCall) {
  AttentionCase c;
  c.queries = c.keys = {1030};  // several tasks add to the gradient of each query, in turns
  c.heads = c.key_heads = c.value_heads = 1;
  AttentionProblem p(c);
  p.forward();
  const int before = thread_count();
  int failures = 0, allowed = 0;
  for (bool failed = true; failed; ++allowed) {
    failed = false;
    set_thread_count(1);
    set_thread_count(3);  // new threads, the caller's too, which hold no memory yet
    allocations_left = allowed;
    std::thread caller([&] {
      try {
        p.backward();
      } catch (const std::bad_alloc&) {
        failed = true;
      }
    });
    caller.join();
    allocations_left = -1;
    failures += failed ? 1 : 0;
    ASSERT_LT(allowed, 1000);
  }
  EXPECT_GT(failures, 2);  // else the numbers above are not those of this kernel's memory
  set_thread_count(before);
}

}  // namespace
}  // namespace mh

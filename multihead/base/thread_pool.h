// The one thread pool. Work is cut into tasks by shape, never by the number of threads, and a task's result
// does not depend on who runs it: the answer is the same bits for any thread count.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace mh {

/// How many threads parallel_for uses (the caller is one of them). Default: the processors this process may
/// use.
int thread_count();
/// More threads than processors make it slower, never different. REQUIRES: no other thread is in a
/// parallel_for. Throws UsageError unless 1 <= threads <= kMostThreads.
inline constexpr int kMostThreads = 1024;
void set_thread_count(int threads);

namespace detail {
void parallel_for(int64_t tasks, void (*run)(void* body, int64_t task, int worker), void* body);
}

/// Calls body(task) or body(task, worker) once for each task in [0, tasks), worker in [0, thread_count()).
/// Returns when all are done; the first exception thrown by a body is thrown again here, and after it no other task begins.
/// Before each task the caller's StopScope is asked (stop.h).
/// A parallel_for inside a body runs its tasks on the calling thread; so does one that is called while
/// another thread's parallel_for has the pool: it never waits, so that callers may hold locks.
template <class Body>
void parallel_for(int64_t tasks, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::parallel_for(
      tasks,
      [](void* p, int64_t task, int worker) {
        if constexpr (std::is_invocable_v<Plain&, int64_t, int>) {
          (*static_cast<Plain*>(p))(task, worker);
        } else {
          (*static_cast<Plain*>(p))(task);
          (void)worker;
        }
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace mh

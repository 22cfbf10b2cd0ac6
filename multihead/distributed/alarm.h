// Alarm: watches over a call that cannot be left, such as MPI_Init, which waits for all ranks without an end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace mh {

/// Calls `late`, by a thread of its own, when it still stands after `deadline`.
///
///   {
///     const Alarm alarm(deadline, [] { ... });
///     call_that_may_hang();
///   }
class Alarm {
 public:
  Alarm(std::chrono::milliseconds deadline, std::function<void()> late)
      : thread_([this, deadline, late = std::move(late)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          over_.wait_for(lock, stop, deadline, [] { return false; });
          if (!stop.stop_requested()) late();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread thread_;  // the last member: it is stopped and awaited first
};

}  // namespace mh

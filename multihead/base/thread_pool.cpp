#include "multihead/base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/executor.h"
#include "multihead/base/platform.h"
#include "multihead/base/stop.h"

namespace mh {
namespace {

thread_local bool inside_a_task = false;

// Workers spin for a short while before they sleep: a training step calls parallel_for hundreds of times.
constexpr int kSpins = 2000;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// One call of parallel_for: the tasks that are left, and the first exception.
class Loop {
 public:
  Loop(int64_t tasks, int threads, void (*body)(void*, int64_t, int), void* data)
      : tasks_(tasks), threads_(threads), body_(body), data_(data) {}

  void take_tasks(int worker) {
    inside_a_task = true;
    for (;;) {
      const int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
      if (task >= tasks_) break;
      attempt([&] {
        throw_if_stopped();
        body_(data_, task, worker);
      });
    }
    inside_a_task = false;
  }
  /// The same on a thread that helps the caller.
  void help(int worker) {
    const detail::HelpStop help(stop_);
    take_tasks(worker);
  }
  /// The same on a thread of an executor, the caller's or another.
  void join() {
    const int worker = joined_.fetch_add(1, std::memory_order_relaxed);
    if (worker >= threads_) return;
    if (std::this_thread::get_id() == caller_) {
      take_tasks(worker);
    } else {
      help(worker);
    }
  }
  void ask_whether_to_stop() {
    attempt([] { throw_if_stopped(); });
  }
  void throw_failure() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  /// Keeps the first exception; then no other task begins. When the question whether to stop throws, other threads see the
  /// stop at once and their Interrupted may come first: the exception of the question replaces it.
  template <class Work>
  void attempt(const Work& work) {
    try {
      work();
    } catch (const Interrupted&) {
      keep_failure(/*interrupted=*/true);
    } catch (...) {
      keep_failure(/*interrupted=*/false);
    }
  }
  void keep_failure(bool interrupted) {
    std::lock_guard lock(mutex_);
    if (!failure_ || (interrupted_ && !interrupted)) {
      failure_ = std::current_exception();
      interrupted_ = interrupted;
    }
    next_.store(tasks_, std::memory_order_relaxed);
  }

  const int64_t tasks_;
  const int threads_;
  void (*const body_)(void*, int64_t, int);
  void* const data_;
  const std::thread::id caller_ = std::this_thread::get_id();
  detail::Stop* const stop_ = detail::stop_here();  // of the caller
  std::atomic<int64_t> next_{0};
  std::atomic<int> joined_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
  bool interrupted_ = false;  // failure_ is an Interrupted
};

class Pool {
 public:
  explicit Pool(int threads) {
    for (int worker = 1; worker < threads; ++worker) {
      workers_.emplace_back([this, worker] { work(worker); });
    }
  }
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (auto& thread : workers_) thread.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// False when another thread's loop has the pool.
  bool run(Loop& loop) {
    const std::unique_lock one_caller(callers_, std::try_to_lock);
    if (!one_caller) return false;
    {
      std::lock_guard lock(mutex_);
      loop_ = &loop;
      busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
      generation_.fetch_add(1, std::memory_order_release);
    }
    if (sleeping_.load(std::memory_order_seq_cst) > 0) wake_.notify_all();
    loop.take_tasks(0);
    for (int spin = 0; busy_.load(std::memory_order_acquire) > 0; ++spin) {
      if (spin < kSpins) {
        pause_briefly();
      } else {
        std::this_thread::yield();
        if (spin % kSpins == 0) loop.ask_whether_to_stop();  // others may still have a long task
      }
    }
    return true;
  }

 private:
  void work(int worker) {
    uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; generation_.load(std::memory_order_acquire) == seen && spin < kSpins; ++spin) {
        pause_briefly();
      }
      if (generation_.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex_);
        sleeping_.fetch_add(1, std::memory_order_seq_cst);
        // Not wait(), the one symbol that would ask for a libstdc++ (GLIBCXX_3.4.30) newer than manylinux_2_34 promises.
        while (generation_.load(std::memory_order_acquire) == seen)
          wake_.wait_for(lock, std::chrono::hours(1));
        sleeping_.fetch_sub(1, std::memory_order_seq_cst);
      }
      seen = generation_.load(std::memory_order_acquire);
      if (stopping_) return;
      loop_->help(worker);
      busy_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> workers_;
  std::mutex callers_;  // one parallel_for at a time
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> busy_{0};
  std::atomic<int> sleeping_{0};
  bool stopping_ = false;  // written before generation_ is released
  Loop* loop_ = nullptr;   // the same
};

struct Shared {
  std::mutex mutex;
  std::shared_ptr<Pool> pool;  // made at the first parallel_for that needs it; a loop that runs keeps it
  int threads_wanted = 0;      // 0: not asked for
  Executor executor = nullptr;
};

/// A child of fork() has the caller's thread alone: it forgets the pool, whose workers are not there and whose locks another
/// thread may have held, and makes one of its own.
Shared& shared() {
  static Shared* current = [] {
    call_in_forked_child([] {
      const int wanted = current->threads_wanted;
      current = new Shared;
      current->threads_wanted = wanted;
    });
    return new Shared;
  }();
  return *current;
}

}  // namespace

int thread_count() {
  Shared& state = shared();
  std::lock_guard lock(state.mutex);
  if (state.threads_wanted == 0) state.threads_wanted = available_processors();
  return state.threads_wanted;
}

void set_thread_count(int threads) {
  if (threads < 1 || threads > kMostThreads) {
    throw UsageError(std::to_string(threads) + " threads; expected 1 ... " + std::to_string(kMostThreads));
  }
  if (threads > 1 && !has_threads())
    throw UsageError("this system has one thread; leave out the number of threads");
  Shared& state = shared();
  std::lock_guard lock(state.mutex);
  if (threads != state.threads_wanted) state.pool.reset();
  state.threads_wanted = threads;
}

void set_executor(Executor executor) {
  Shared& state = shared();
  std::lock_guard lock(state.mutex);
  state.executor = executor;
}

void detail::parallel_for(int64_t tasks, void (*run)(void*, int64_t, int), void* body) {
  const auto run_here = [&] {
    for (int64_t task = 0; task < tasks; ++task) {
      throw_if_stopped();
      run(body, task, 0);
    }
  };
  const int threads = inside_a_task || tasks <= 1 ? 1 : thread_count();
  if (threads == 1) return run_here();
  std::shared_ptr<Pool> pool;
  Executor executor;
  {
    Shared& state = shared();
    std::lock_guard lock(state.mutex);
    executor = state.executor;
    if (!executor && !state.pool) state.pool = std::make_shared<Pool>(state.threads_wanted);
    if (!executor) pool = state.pool;
  }
  Loop loop(tasks, threads, run, body);
  if (executor) {
    executor(
        threads, [](void* data) { static_cast<Loop*>(data)->join(); }, &loop);
  } else if (!pool->run(loop)) {
    return run_here();
  }
  loop.throw_failure();
}

}  // namespace mh

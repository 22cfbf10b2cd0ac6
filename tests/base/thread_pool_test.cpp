#include "multihead/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/executor.h"

namespace mh {
namespace {

/// An executor as simple as can be.
void run_on_new_threads(int threads, void (*work)(void*), void* data) {
  std::vector<std::thread> others;
  for (int other = 1; other < threads; ++other) others.emplace_back(work, data);
  work(data);
  for (auto& other : others) other.join();
}
/// One that has fewer threads than asked for.
void run_on_two_threads(int, void (*work)(void*), void* data) {
  run_on_new_threads(2, work, data);
}

struct Threads {
  int count;
  Executor executor = nullptr;
  operator int() const { return count; }  // NOLINT: what most tests ask for
};

class ThreadPool : public testing::TestWithParam<Threads> {
 protected:
  void SetUp() override {
    before_ = thread_count();
    set_thread_count(GetParam());
    set_executor(GetParam().executor);
  }
  void TearDown() override {
    set_executor(nullptr);
    set_thread_count(before_);
  }

 private:
  int before_ = 1;
};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPool,
                         testing::Values(Threads{1}, Threads{2}, Threads{3}, Threads{7}));
INSTANTIATE_TEST_SUITE_P(Executors, ThreadPool,
                         testing::Values(Threads{1, run_on_new_threads}, Threads{3, run_on_new_threads},
                                         Threads{7, run_on_two_threads}));

TEST_P(ThreadPool, AnExecutorsThreadsRunTheTasks) {
  if (!GetParam().executor) return;
  static std::atomic<int> calls;
  static Executor run;
  calls = 0, run = GetParam().executor;
  set_executor([](int threads, void (*work)(void*), void* data) {
    ++calls;
    run(threads, work, data);
  });
  std::atomic<int64_t> sum{0};
  parallel_for(101, [&](int64_t task) { sum += task; });
  EXPECT_EQ(sum, 5050);
  EXPECT_EQ(calls, GetParam().count == 1 ? 0 : 1);  // one thread needs no help
}

TEST_P(ThreadPool, RunsEachTaskOnce) {
  for (const int64_t tasks : {0, 1, 2, 5, 1009}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
    std::atomic<int> odd_workers{0};
    parallel_for(tasks, [&](int64_t task, int worker) {
      ++runs[static_cast<size_t>(task)];
      if (worker < 0 || worker >= GetParam()) ++odd_workers;
    });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
    EXPECT_EQ(odd_workers, 0);
  }
}

TEST_P(ThreadPool, AWorkerDoesOneTaskAtATime) {
  std::vector<std::atomic<int>> active(static_cast<size_t>(GetParam()));
  std::atomic<int> clashes{0};
  parallel_for(997, [&](int64_t, int worker) {
    if (active[static_cast<size_t>(worker)].fetch_add(1) != 0) ++clashes;
    std::this_thread::yield();
    active[static_cast<size_t>(worker)].fetch_sub(1);
  });
  EXPECT_EQ(clashes, 0);
}

TEST_P(ThreadPool, SeesWhatWasWrittenBeforeAndShowsItAfter) {
  std::vector<int64_t> squares(1013);
  for (int round = 1; round <= 50; ++round) {  // the pool is used again and again, sleeping or awake
    parallel_for(static_cast<int64_t>(squares.size()),
                 [&](int64_t task) { squares[static_cast<size_t>(task)] += task * round; });
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (size_t i = 0; i < squares.size(); ++i) EXPECT_EQ(squares[i], static_cast<int64_t>(i) * 50 * 51 / 2);
}

TEST_P(ThreadPool, ThrowsAgainWhatABodyThrew) {
  for (const int64_t bad : {0, 3, 96}) {
    try {
      parallel_for(97, [&](int64_t task) {
        if (task == bad) throw std::runtime_error("task " + std::to_string(task));
      });
      ADD_FAILURE() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "task " + std::to_string(bad));
    }
  }
  EXPECT_THROW(parallel_for(97, [](int64_t) { throw 1; }), int);
  std::atomic<int> runs{0};
  parallel_for(97, [&](int64_t) { ++runs; });  // as good as before
  EXPECT_EQ(runs, 97);
}

TEST_P(ThreadPool, NestedLoopsRunToTheirEnd) {
  std::vector<std::atomic<int>> runs(5 * 7);
  parallel_for(5, [&](int64_t outer) {
    const auto thread = std::this_thread::get_id();
    parallel_for(7, [&](int64_t inner) {
      ++runs[static_cast<size_t>(outer * 7 + inner)];
      EXPECT_EQ(std::this_thread::get_id(), thread);
    });
  });
  for (const auto& count : runs) EXPECT_EQ(count, 1);
  EXPECT_THROW(
      parallel_for(5, [](int64_t) { parallel_for(3, [](int64_t) { throw std::logic_error("inner"); }); }),
      std::logic_error);
}

TEST_P(ThreadPool, ManyCallersAtOnce) {
  std::vector<int64_t> sums(4);
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < sums.size(); ++caller) {
    callers.emplace_back([&sums, caller] {
      for (int round = 0; round < 20; ++round) {
        std::atomic<int64_t> sum{0};
        parallel_for(101, [&](int64_t task) { sum += task; });
        sums[caller] += sum;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  for (const int64_t sum : sums) EXPECT_EQ(sum, 20 * 5050);
}

// A child has none of its parent's workers: it must neither wait for them nor for a lock that one of them held.
TEST_P(ThreadPool, WorksInAChildProcessToo) {
  const auto sum_of_tasks = [] {
    std::atomic<int64_t> sum{0};
    parallel_for(101, [&](int64_t task) { sum += task; });
    return sum.load();
  };
  ASSERT_EQ(sum_of_tasks(), 5050);  // the parent's workers are there
  const int threads = thread_count();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // a child that hangs ends
    ::_exit(sum_of_tasks() == 5050 && thread_count() == threads ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(sum_of_tasks(), 5050);
}

TEST(ThreadPool, RefusesCountsThatCannotBe) {
  const int before = thread_count();
  EXPECT_THROW(set_thread_count(0), UsageError);
  EXPECT_THROW(set_thread_count(-1), UsageError);
  EXPECT_THROW(set_thread_count(kMostThreads + 1), UsageError);
  EXPECT_EQ(thread_count(), before);
}

}  // namespace
}  // namespace mh

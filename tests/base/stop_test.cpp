#include "multihead/base/stop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"

namespace mh {
namespace {

class Stopping : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    before_ = thread_count();
    set_thread_count(GetParam());
  }
  void TearDown() override { set_thread_count(before_); }

 private:
  int before_ = 1;
};
INSTANTIATE_TEST_SUITE_P(Threads, Stopping, testing::Values(1, 2, 5));

// Tasks that would take a minute, the innermost in a nested loop.
void work_long() {
  parallel_for(101, [](int64_t) {
    parallel_for(601, [](int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  });
}

TEST_P(Stopping, EndsNestedLoopsOfAllThreads) {
  const auto begun = std::chrono::steady_clock::now();
  std::atomic<int> asked{0};
  {
    const StopScope scope([&] { return ++asked > 2; });
    EXPECT_THROW(work_long(), Interrupted);
    EXPECT_EQ(asked, 3);
    EXPECT_THROW(work_long(), Interrupted);  // once is enough
    EXPECT_TRUE(stop_asked());
    EXPECT_EQ(asked, 3);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
  EXPECT_FALSE(stop_asked());
  std::atomic<int> runs{0};
  parallel_for(97, [&](int64_t) { ++runs; });
  EXPECT_EQ(runs, 97);
}

TEST_P(Stopping, TheCallingThreadAloneIsAsked) {
  const auto caller = std::this_thread::get_id();
  std::set<std::thread::id> asked;
  int times = 0;
  const StopScope scope([&] {
    asked.insert(std::this_thread::get_id());
    return ++times > 3;
  });
  EXPECT_THROW(work_long(), Interrupted);
  EXPECT_EQ(asked, std::set{caller});
}

TEST_P(Stopping, WhatTheQuestionThrowsIsThrown) {
  const StopScope scope([]() -> bool { throw std::logic_error("asked"); });
  EXPECT_THROW(work_long(), std::logic_error);
  EXPECT_THROW(work_long(), Interrupted);  // it is not asked again
}

// The caller's thread is slow to leave its task, so that the others' Interrupted comes first.
TEST_P(Stopping, WhatTheQuestionThrowsReplacesTheOthersInterrupted) {
  struct SlowToLeave {
    std::thread::id caller;
    ~SlowToLeave() {
      if (std::this_thread::get_id() == caller) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  };
  const auto caller = std::this_thread::get_id();
  int asked = 0;
  const StopScope scope([&] {
    if (++asked > 1) throw std::logic_error("asked within a task");
    return false;
  });
  EXPECT_THROW(parallel_for(101,
                            [&](int64_t) {
                              const SlowToLeave slow{caller};
                              work_long();
                            }),
               std::logic_error);
}

TEST_P(Stopping, TheInnerScopeCounts) {
  const StopScope outer([] { return true; });
  std::atomic<int> runs{0};
  {
    const StopScope whole(nullptr);
    parallel_for(97, [&](int64_t) { ++runs; });
    EXPECT_FALSE(stop_asked());
    {
      const StopScope inner([] { return true; });
      EXPECT_THROW(throw_if_stopped(), Interrupted);
    }
    EXPECT_NO_THROW(throw_if_stopped());
  }
  EXPECT_EQ(runs, 97);
  EXPECT_THROW(throw_if_stopped(), Interrupted);
}

TEST_P(Stopping, AnotherThreadIsNotEnded) {
  const StopScope scope([] { return true; });
  std::atomic<int> runs{0};
  std::thread([&] { parallel_for(97, [&](int64_t) { ++runs; }); }).join();
  EXPECT_EQ(runs, 97);
}

TEST_P(Stopping, AfterAnExceptionNoOtherTaskBegins) {
  std::atomic<int> runs{0};
  EXPECT_THROW(parallel_for(100003,
                            [&](int64_t task) {
                              ++runs;
                              if (task == 0) throw std::logic_error("first");
                              std::this_thread::sleep_for(std::chrono::microseconds(50));
                            }),
               std::logic_error);
  EXPECT_LT(runs, 100003);
}

}  // namespace
}  // namespace mh

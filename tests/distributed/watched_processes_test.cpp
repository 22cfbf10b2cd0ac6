// Real processes, stopped and killed.
#include "multihead/distributed/watched_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "multihead/distributed/join_processes.h"
#include "multihead/distributed/processors.h"

namespace mh {
namespace {

// The state after at most ten seconds.
ProcessState awaited(const ProcessId& process, ProcessState state) {
  for (int i = 0; i < 1000 && state_of(process, this_process()) != state; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return state_of(process, this_process());
}

TEST(WatchedProcesses, AChildThatIsStoppedLeavesAndIsKilled) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const ProcessId me = this_process();
    if (::write(ends[1], &me.started, sizeof me.started) < 0) ::_exit(1);
    ::raise(SIGSTOP);
    announce_leaving();
    for (;;) ::pause();
  }
  ProcessId process = this_process();
  process.number = child;
  ASSERT_EQ(::read(ends[0], &process.started, sizeof process.started),
            static_cast<ssize_t>(sizeof process.started));
  EXPECT_EQ(awaited(process, ProcessState::kStopped), ProcessState::kStopped);
  ::kill(child, SIGCONT);
  EXPECT_EQ(awaited(process, ProcessState::kRuns), ProcessState::kRuns);
  for (int i = 0; i < 1000 && !leaving_since(process, this_process()); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(leaving_since(process, this_process()));
  EXPECT_FALSE(leaving_since(this_process(), this_process()));

  ProcessId other = process;  // a number that a later process has
  other.started += 1;
  EXPECT_FALSE(leaving_since(other, this_process()));
  EXPECT_EQ(state_of(other, this_process()), ProcessState::kEnded);
  other.machine = "another";
  EXPECT_EQ(state_of(other, this_process()), ProcessState::kElsewhere);

  ::kill(child, SIGKILL);
  EXPECT_EQ(awaited(process, ProcessState::kEnded), ProcessState::kEnded);  // nobody has waited for it yet
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(state_of(process, this_process()), ProcessState::kEnded);
  ::close(ends[0]), ::close(ends[1]);
}

TEST(LaunchedProcesses, AreCountedByTheLaunchersVariables) {
  const auto set = [](const char* name, const char* value) { ::setenv(name, value, 1); };
  EXPECT_EQ(launched_processes(), 1);
  set("SLURM_STEP_NUM_TASKS", "7");  // a batch script, which is one process
  EXPECT_EQ(launched_processes(), 1);
  set("PMIX_RANK", "4");
  EXPECT_EQ(launched_processes(), 7);
  EXPECT_EQ(launched_rank(), 4);
  ::unsetenv("PMIX_RANK"), ::unsetenv("SLURM_STEP_NUM_TASKS");
  set("OMPI_COMM_WORLD_SIZE", "3"), set("OMPI_COMM_WORLD_RANK", "2");
  EXPECT_EQ(launched_processes(), 3);
  EXPECT_EQ(launched_rank(), 2);
  set("OMPI_COMM_WORLD_SIZE", "many");
  EXPECT_EQ(launched_processes(), 1);
  ::unsetenv("OMPI_COMM_WORLD_SIZE"), ::unsetenv("OMPI_COMM_WORLD_RANK");
}

}  // namespace
}  // namespace mh

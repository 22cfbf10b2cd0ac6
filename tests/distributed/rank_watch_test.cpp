// Ranks as real processes, each with a watch of its own.
#include "multihead/distributed/rank_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "multihead/distributed/process_group.h"

namespace mh {
namespace {

using std::chrono::milliseconds;
using testing::MatchesRegex;

constexpr int kRanks = 3;

// What the ranks say in all, a line each time, when each of them does what `act` says and then ends.
std::string said_by_ranks(const std::function<void(RankWatch& watch, int rank, const TellLost& say)>& act) {
  struct Table {
    std::atomic<int> known;
    std::array<std::atomic<int64_t>, kRanks> number, started;
  };
  void* shared = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* table = new (shared) Table{};
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = ::fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    ::alarm(60);  // a rank that hangs ends
    const ProcessId me = this_process();
    const auto at = static_cast<size_t>(rank);
    table->number[at] = me.number, table->started[at] = me.started;
    ++table->known;
    while (table->known < kRanks) std::this_thread::sleep_for(milliseconds(1));
    std::vector<ProcessId> all;
    for (size_t r = 0; r < kRanks; ++r)
      all.push_back({.machine = me.machine, .number = table->number[r], .started = table->started[r]});
    const TellLost say = [to = ends[1]](const std::string& what) {
      const std::string line = what + "\n";
      if (::write(to, line.data(), line.size()) < 0) ::_exit(1);
    };
    {
      RankWatch watch(all, rank, std::chrono::seconds(100), say);
      try {
        act(watch, rank, say);
      } catch (const LostRank& lost) {
        if (lost.this_rank_speaks()) say(lost.what());
      }
    }  // its thread has ended: the thread sanitizer would report one that is left
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  for (char letter = 0; ::read(ends[0], &letter, 1) == 1;) text += letter;
  ::close(ends[0]);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  ::munmap(shared, sizeof(Table));
  return text;
}

TEST(RankWatch, OneRankTellsOfOneThatHasEnded) {
  const std::string text = said_by_ranks([](RankWatch& watch, int rank, const TellLost&) {
    if (rank == 0) ::raise(SIGKILL);
    while (!watch.ended()) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(watch.ended(), 0);
    watch.leave(watch.named(0) + " has ended", true);
  });
  EXPECT_THAT(text, MatchesRegex("rank 0 \\(process [0-9]+ on .*\\) has ended\n"));
}

// The two that are left find out at different times; the first one tells, and its end is not told.
TEST(RankWatch, OneRankTellsOfOneThatDoesNotAnswer) {
  const std::string text = said_by_ranks([](RankWatch& watch, int rank, const TellLost&) {
    if (rank == 1) std::this_thread::sleep_for(milliseconds(1500));
    if (rank == 1) return watch.finish();
    if (rank == 0) std::this_thread::sleep_for(milliseconds(150));
    watch.leave(rank == 2 ? "the first" : "the second", false);
  });
  EXPECT_EQ(text, "the first\n");
}

TEST(RankWatch, NobodyTellsOfRanksThatAreDone) {
  const std::string text = said_by_ranks([](RankWatch& watch, int rank, const TellLost&) {
    watch.finish();
    std::this_thread::sleep_for(milliseconds(200 * rank));
  });
  EXPECT_EQ(text, "");
}

TEST(RankWatch, SeesARankThatASignalHasStopped) {
  const std::string text = said_by_ranks([](RankWatch& watch, int rank, const TellLost& say) {
    if (rank == 2) {
      ::raise(SIGSTOP);
      return watch.finish();
    }
    while (rank == 1 && !watch.ended()) std::this_thread::sleep_for(milliseconds(1));
    if (rank == 1) watch.leave("", true);
    while (!watch.stopped()) std::this_thread::sleep_for(milliseconds(1));
    say("stopped: " + std::to_string(*watch.stopped()));
    const std::string number = watch.named(2).substr(std::string("rank 2 (process ").size());
    ::kill(std::stoi(number), SIGKILL);
    while (!watch.ended()) std::this_thread::sleep_for(milliseconds(1));
    watch.leave("", true);
  });
  EXPECT_THAT(text, MatchesRegex("stopped: 2\nrank 2 .* has ended\n"));
}

}  // namespace
}  // namespace mh

#include "multihead/distributed/rank_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "multihead/distributed/process_group.h"

namespace mh {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

RankWatch::RankWatch(std::vector<ProcessId> processes, int rank, milliseconds deadline, TellLost tell)
    : processes_(std::move(processes)), here_(this_process()), rank_(rank), deadline_(deadline) {
  if (tell) {
    thread_ =
        std::jthread([this, tell = std::move(tell)](const std::stop_token& stop) { watch(stop, tell); });
  }
}

std::string RankWatch::named(int rank) const {
  const ProcessId& process = processes_[static_cast<size_t>(rank)];
  return fmt::format("rank {} (process {} on {})", rank, process.number, process.machine);
}

std::optional<int> RankWatch::ended() const {
  for (int r = 0; r < static_cast<int>(processes_.size()); ++r) {
    if (r != rank_ && has_ended(r)) return r;
  }
  return std::nullopt;
}

std::optional<int> RankWatch::stopped() const {
  for (int r = 0; r < static_cast<int>(processes_.size()); ++r) {
    if (r != rank_ && state_of(processes_[static_cast<size_t>(r)], here_) == ProcessState::kStopped) return r;
  }
  return std::nullopt;
}

bool RankWatch::given_up() const {
  const auto looked = looked_.load();
  if (looked == Clock::time_point{} || Clock::now() - looked <= deadline_) return false;
  if (ended()) return true;
  for (int r = 0; r < static_cast<int>(processes_.size()); ++r) {
    if (r != rank_ && leaving(r)) return true;
  }
  return false;
}

void RankWatch::finish() {
  finishing_ = true;
  if (thread_.joinable()) thread_.request_stop(), thread_.join();
}

// The launcher ends all others as soon as one has ended, so nobody ends before the one that tells.
bool RankWatch::leaves_first() {
  announce_leaving();
  std::this_thread::sleep_for(milliseconds(300));
  const int64_t mine = leaving(rank_).value_or(0);
  for (int r = 0; r < static_cast<int>(processes_.size()); ++r) {
    const auto theirs = leaving(r);
    if (r != rank_ && theirs && (*theirs < mine || (*theirs == mine && r < rank_))) return false;
  }
  return true;
}

void RankWatch::leave(const std::string& what, bool told) {
  if (!told) finishing_ = true;  // now the thread tells nothing more
  if (leaves_first() && !told) {
    // One of another machine, which is not to be seen from here, goes first.
    const bool below = std::any_of(
        processes_.begin(), processes_.begin() + rank_,
        [&](const ProcessId& process) { return state_of(process, here_) == ProcessState::kElsewhere; });
    if (below) std::this_thread::sleep_for(milliseconds(1000));
    throw LostRank(what, LostRank::Speaks::kThisRank);
  }
  if (!told) std::this_thread::sleep_for(milliseconds(2000));
  throw LostRank(what, LostRank::Speaks::kAnotherRank);
}

bool RankWatch::has_ended(int rank) const {
  return state_of(processes_[static_cast<size_t>(rank)], here_) == ProcessState::kEnded;
}

std::optional<int64_t> RankWatch::leaving(int rank) const {
  return leaving_since(processes_[static_cast<size_t>(rank)], here_);
}

bool RankWatch::is_lowest_left(int missing) const {
  int lowest = 0;
  while (lowest < rank_ && (lowest == missing || has_ended(lowest))) ++lowest;
  return lowest == rank_;
}

// A launcher ends everybody soon after one has ended, perhaps in the middle of a long update. So this thread looks
// and tells, and the one that trains throws when it next waits for somebody.
void RankWatch::watch(const std::stop_token& stop, const TellLost& tell) {
  std::vector<bool> left(processes_.size());  // they have lost another rank, and tell of that one
  while (!stop.stop_requested()) {
    const auto before = Clock::now();
    looked_ = before;
    std::this_thread::sleep_for(milliseconds(100));
    // This rank was stopped, and the others have told of it.
    if (Clock::now() - before > deadline_ / 2) return;
    for (size_t r = 0; r < processes_.size() && !stop.stop_requested(); ++r) {
      const int rank = static_cast<int>(r);
      if (rank == rank_) continue;
      if (leaving(rank)) left[r] = true;
      if (!has_ended(rank)) continue;
      if (!finishing_ && !left[r] && is_lowest_left(rank)) tell(fmt::format("{} has ended", named(rank)));
      return;
    }
  }
}

}  // namespace mh

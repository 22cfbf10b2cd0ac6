// RankWatch: which ranks of this machine are still there, and which of those that are left tells the user.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "multihead/distributed/watched_processes.h"

namespace mh {

/// One line about a lost rank, for the user.
using TellLost = std::function<void(const std::string& what)>;

class RankWatch {
 public:
  /// Watches the processes of all ranks, by rank; this one is `rank`. When another one of this machine has ended, `tell`
  /// is called within about 0.1 s on the lowest rank that is left, by a thread of the watch; without a `tell` no
  /// thread is started. `deadline` is how long a rank may be silent: one that was stopped for half as long is silent itself.
  RankWatch(std::vector<ProcessId> processes, int rank, std::chrono::milliseconds deadline, TellLost tell);
  ~RankWatch() { finish(); }
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// "rank 2 (process 4711 on its machine)".
  std::string named(int rank) const;
  /// Another rank of this machine that has ended.
  std::optional<int> ended() const;
  /// Another rank of this machine that a signal has stopped.
  std::optional<int> stopped() const;

  /// Whether this rank was stopped for longer than the deadline, and others have left meanwhile: they have told of it.
  bool given_up() const;

  /// From now on ranks end because they are done.
  void finish();

  /// This rank is about to end before it is done. Returns after the others have had time to see that: whether it is the
  /// first one to do so, which is the one to tell the user.
  bool leaves_first();
  /// This rank has lost another one: throws LostRank. The first one to leave tells the user; none does when `told`, which is
  /// what `tell` has done.
  [[noreturn]] void leave(const std::string& what, bool told);

 private:
  bool has_ended(int rank) const;
  std::optional<int64_t> leaving(int rank) const;
  bool is_lowest_left(int missing) const;
  void watch(const std::stop_token& stop, const TellLost& tell);

  const std::vector<ProcessId> processes_;
  const ProcessId here_;
  const int rank_;
  const std::chrono::milliseconds deadline_;
  std::atomic<bool> finishing_ = false;
  std::atomic<std::chrono::steady_clock::time_point>
      looked_{};  // the thread, last; the epoch before its first look
  std::jthread thread_;
};

}  // namespace mh

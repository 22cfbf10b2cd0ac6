// Whether processes of this machine are still there. MPI itself does not say that a rank has died.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mh {

/// A process as its machine knows it. The time of its start tells it from a later one with the same number.
struct ProcessId {
  std::string machine;
  int64_t number = 0;
  int64_t started = 0;  // in clock ticks since the machine's start
};

/// This process.
ProcessId this_process();

enum class ProcessState {
  kRuns,
  kStopped,  // by a signal such as SIGSTOP
  kEnded,
  kElsewhere,  // on another machine, or not to be seen from here
};

/// REQUIRES: `process` is what this_process() returned there.
ProcessState state_of(const ProcessId& process, const ProcessId& here);

/// This process is about to end: those that watch it need not tell anybody. Its name, as ps and top show it, is
/// then "leaves" and the time.
void announce_leaving();

/// When a process of this machine called announce_leaving(), in milliseconds of one clock for all of them; nullopt when it
/// did not, or has ended. REQUIRES: as state_of().
std::optional<int64_t> leaving_since(const ProcessId& process, const ProcessId& here);

}  // namespace mh

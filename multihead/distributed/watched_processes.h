// Whether processes of this machine are still there. MPI itself does not say that a rank has died.
#pragma once

#include <cstdint>
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

}  // namespace mh

// Finds the processes that a launcher (mpirun, Slurm's srun) started together with this one.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "multihead/distributed/process_group.h"

namespace mh {

struct JoinOptions {
  /// LostRank after a call of the group has waited so long for another rank. Longer than the longest pause of
  /// a rank that is well: it learns a tokenizer, or writes a checkpoint.
  std::chrono::milliseconds deadline{600'000};
  /// Called when a rank on this machine has ended, within about 0.1 s and on one of the ranks that are left, with one
  /// line that says which; the launcher may soon end all others. By a thread of the group.
  std::function<void(const std::string& what)> lost = nullptr;
  /// Called when MPI itself does not start, or end, on all ranks within the deadline, with one line that says so. The
  /// call of MPI cannot be left, so all that is left to do is to tell it and end the process. By a thread of the group.
  std::function<void(const std::string& what)> stuck = nullptr;
};

/// How many processes a launcher says that it has started, by its environment variables; 1 without a launcher.
int launched_processes();

/// The number of this process among them, from 0.
int launched_rank();

/// Returns the group of all processes that the launcher started, over MPI (MPI Forum 2015); OneProcess when
/// this one stands alone. One call in a process's life. Throws UsageError when there are several and the
/// library was built without MPI, so that they would be trainings side by side.
std::unique_ptr<ProcessGroup> join_processes(const JoinOptions& options = {});

}  // namespace mh

// The group over MPI. Only mpi_group.cpp knows MPI; without it, without_mpi.cpp is built in its place.
#pragma once

#include <memory>

#include "multihead/distributed/join_processes.h"

namespace mh {

/// Starts MPI; null when the library was built without it.
std::unique_ptr<ProcessGroup> join_mpi(const JoinOptions& options);

}  // namespace mh

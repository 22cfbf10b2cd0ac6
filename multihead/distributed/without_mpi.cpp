#ifndef MULTIHEAD_MPI
#include "multihead/distributed/mpi_group.h"

namespace mh {

std::unique_ptr<ProcessGroup> join_mpi(const JoinOptions&) {
  return nullptr;
}

}  // namespace mh
#endif

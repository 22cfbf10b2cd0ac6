#include "multihead/distributed/join_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "multihead/distributed/mpi_group.h"

namespace mh {

namespace {

// The number in an environment variable; `otherwise` when it has none.
int number_in(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  if (value == nullptr) return otherwise;
  const std::string_view text = value;
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

}  // namespace

int launched_processes() {
  // Open MPI's mpirun; MPICH's Hydra and Slurm with PMI 2; Hydra again.
  int most = 1;
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"})
    most = std::max(most, number_in(variable, 1));
  // Slurm's srun with PMIx; a batch script itself has the first of the two as well.
  if (number_in("PMIX_RANK", -1) >= 0) most = std::max(most, number_in("SLURM_STEP_NUM_TASKS", 1));
  return most;
}

int launched_rank() {
  int rank = 0;
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    rank = std::max(rank, number_in(variable, 0));
  return rank;
}

std::unique_ptr<ProcessGroup> join_processes(const JoinOptions& options) {
  const int processes = launched_processes();
  if (processes == 1) return std::make_unique<OneProcess>();
  if (auto group = join_mpi(options)) return group;
  throw UsageError(
      fmt::format("started as {} processes, but this program was built without MPI: build it with "
                  "-DMULTIHEAD_MPI=ON (make mpi), or start it without the launcher",
                  processes));
}

}  // namespace mh

#include "multihead/distributed/processors.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <map>
#include <set>

#include "multihead/distributed/agreement.h"
#include "multihead/distributed/message.h"
#include "multihead/distributed/watched_processes.h"

namespace mh {

std::string too_many_threads(ProcessGroup& group, int threads) {
  if (group.size() == 1) return "";
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  MessageWriter mine;
  mine.add(std::string_view(this_process().machine));
  mine.add(threads);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) mine.add(cpu);
  }
  struct Machine {
    int ranks = 0, threads = 0;
    std::set<int> processors;
  };
  std::map<std::string, Machine> machines;
  for (const std::string& theirs : agree_or_fail(group, mine.bytes())) {
    MessageReader reader(theirs);
    Machine& machine = machines[std::string(reader.text())];
    machine.ranks += 1;
    machine.threads += reader.number<int>();
    while (!reader.empty()) machine.processors.insert(reader.number<int>());
  }
  for (const auto& [name, machine] : machines) {
    const auto processors = static_cast<int>(machine.processors.size());
    if (machine.threads <= processors) continue;
    return fmt::format(
        "{} ranks on {} have {} threads together and may use {} {}; give each rank as many processors as "
        "threads "
        "(mpirun --map-by slot:PE={}), or fewer threads (--threads {})",
        machine.ranks, name, machine.threads, processors, processors == 1 ? "processor" : "processors",
        (machine.threads + machine.ranks - 1) / machine.ranks, std::max(1, processors / machine.ranks));
  }
  return "";
}

}  // namespace mh

#include "multihead/distributed/watched_processes.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace mh {
namespace {

struct Entry {
  char state = '?';
  int64_t started = 0;
};

// Fields 3 and 22 of /proc/NUMBER/stat (proc(5)); the second one, in parentheses, may hold anything.
std::optional<Entry> entry_of(int64_t number) {
  std::ifstream file("/proc/" + std::to_string(number) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  Entry entry;
  fields >> entry.state;
  std::string passed;
  for (int field = 4; field < 22; ++field) fields >> passed;
  if (!(fields >> entry.started)) return std::nullopt;
  return entry;
}

}  // namespace

ProcessId this_process() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const int64_t number = ::getpid();
  const auto entry = entry_of(number);
  return {.machine = name.data(), .number = number, .started = entry ? entry->started : 0};
}

ProcessState state_of(const ProcessId& process, const ProcessId& here) {
  if (process.machine != here.machine || process.started == 0) return ProcessState::kElsewhere;
  const auto entry = entry_of(process.number);
  if (!entry || entry->started != process.started || entry->state == 'Z' || entry->state == 'X')
    return ProcessState::kEnded;
  return entry->state == 'T' || entry->state == 't' ? ProcessState::kStopped : ProcessState::kRuns;
}

}  // namespace mh

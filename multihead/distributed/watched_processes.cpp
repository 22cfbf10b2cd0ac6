#include "multihead/distributed/watched_processes.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

namespace mh {
namespace {

constexpr std::string_view kLeaves = "leaves";

struct Entry {
  std::string name;
  char state = '?';
  int64_t started = 0;
};

// Fields 2, 3 and 22 of /proc/NUMBER/stat (proc(5)); the second one, in parentheses, may hold anything.
std::optional<Entry> entry_of(int64_t number) {
  std::ifstream file("/proc/" + std::to_string(number) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name = text.find('('), name_end = text.rfind(')');
  if (name == std::string::npos || name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  Entry entry;
  entry.name = text.substr(name + 1, name_end - name - 1);
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

void announce_leaving() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t count = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  // A name has at most 15 letters (proc(5), comm): nine digits are eleven days.
  std::ofstream("/proc/self/comm") << kLeaves << count % 1'000'000'000;
}

std::optional<int64_t> leaving_since(const ProcessId& process, const ProcessId& here) {
  if (process.machine != here.machine || process.started == 0) return std::nullopt;
  const auto entry = entry_of(process.number);
  if (!entry || entry->started != process.started || !entry->name.starts_with(kLeaves)) return std::nullopt;
  int64_t since = 0;
  const char* end = entry->name.data() + entry->name.size();
  if (std::from_chars(entry->name.data() + kLeaves.size(), end, since).ptr != end) return std::nullopt;
  return since;
}

}  // namespace mh

#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "cli/common.h"

namespace mh::cli {

Progress::Progress(std::string verb, std::string things, std::optional<int64_t> all)
    : verb_(std::move(verb)),
      things_(std::move(things)),
      all_(all),
      wanted_(!quiet() && isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  clear();
}

void Progress::clear() {
  if (shown_) to_stderr("\r\033[K");  // leaves an empty line for what comes
  shown_ = false;
}

void Progress::show(int64_t done) {
  if (!wanted_) return;
  shown_ = true;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  const double rate = static_cast<double>(done) / (passed.count() + 1e-9);
  const std::string of_all = all_ ? fmt::format(" of {}", *all_) : "";
  to_stderr(fmt::format("\r\033[K{} {}{} {}, {:.0f}/s", verb_, done, of_all, things_, rate));
}

}  // namespace mh::cli

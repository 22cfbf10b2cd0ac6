#include "cli/run_tool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/common.h"
#include "cli/completion.h"
#include "cli/failure.h"
#include "cli/help_text.h"
#include "cli/verb.h"
#include "cli/verbs.h"

namespace mh::cli {
namespace {

// A standard stream that is closed would be the next file we open, and what is printed would end up in there.
// Here it is opened for the opposite direction, so that reading or writing it fails as on a closed stream.
void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      static_cast<void>(::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
    }
  }
}

void run(Verb& tool, const std::vector<std::string>& words) {
  if (!words.empty() && words.front() == "complete")  // whose words are no flags of its own
    return write_text("", completions(tool, {words.begin() + 1, words.end()}));
  read_words(tool, words);
  const Verb& verb = tool.chosen();
  const auto asked = [&](const char* flag) { return tool.get_option(flag)->count() > 0; };
  if (asked("--help") || asked("--help-all")) return write_text("", help_text(verb, asked("--help-all")));
  if (asked("--version")) return write_text("", version_line());
  hand_over(verb);
  tool.run();
  verb.run();
}

}  // namespace

int run_tool(int argc, char** argv) {
  occupy_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond ulimit -f is an error of writing, not the end
  Verb tool("multihead", "multihead trains, runs and looks inside the heads of Transformers on the CPU.");
  try {
    add_all(tool);
    run(tool, {argv + 1, argv + argc});
    finish_standard_output();
  } catch (...) {
    return tell_failure(tool, std::current_exception());
  }
  return 0;
}

}  // namespace mh::cli

#include "cli/run_tool.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/common.h"
#include "cli/completion.h"
#include "cli/failure.h"
#include "cli/given_values.h"

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

void run(CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "complete") {  // whose words are no flags of its own
    write_text("", completions(app, {words.begin() + 1, words.end()}));
    return finish_standard_output();
  }
  check_values_are_given(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text, text);
    write_text("", text.str());
  }
  finish_standard_output();
}

}  // namespace

int run_tool(int argc, char** argv) {
  occupy_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond ulimit -f is an error of writing, not the end
  CLI::App app;
  try {
    add_all(app);
    run(app, argc, argv);
  } catch (...) {
    return tell_failure(app, std::current_exception());
  }
  return 0;
}

}  // namespace mh::cli

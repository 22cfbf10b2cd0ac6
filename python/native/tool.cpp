// The command-line tool inside of Python: `python -m multihead VERB ...`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <csignal>
#include <string>
#include <vector>

#include "cli/run_tool.h"
#include "module_parts.h"

namespace mh::python {

namespace nb = nanobind;

namespace {

/// Ctrl-C ends the tool, which Python would turn into an exception. Ignored by whoever started it (nohup, a job in the
/// background), it stays so.
void take_ctrl_c_back() {
  struct sigaction now = {};
  if (::sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) std::signal(SIGINT, SIG_DFL);
}

/// words: the program's name and its arguments. Returns its exit status. Signals do what they do to the tool.
int run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  take_ctrl_c_back();
  std::signal(SIGPIPE, SIG_DFL);
  const nb::gil_scoped_release unlocked;
  return cli::run_tool(static_cast<int>(words.size()), arguments.data());
}

}  // namespace

void add_tool(nb::module_& module) {
  using namespace nb::literals;
  module.def("run_tool", run, "words"_a);
}

}  // namespace mh::python

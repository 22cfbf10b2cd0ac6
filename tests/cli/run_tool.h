// Runs the built tool as a user would, with arguments and standard input, and returns its exit status and
// both outputs.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {

/// With names as text, for command lines.
class ScratchFolder : public test::ScratchFolder {
 public:
  std::string operator/(std::string_view name) const { return (path() / name).string(); }
  std::string write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path() / name, std::ios::binary) << bytes;
    return *this / name;
  }
  std::string read(std::string_view name) const {
    std::ifstream file(path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
};

struct ToolResult {
  int status = -1;
  std::string out, err;
};

/// A line of shell, in which $MULTIHEAD is the tool; it may redirect the streams elsewhere.
inline ToolResult run_shell(const std::string& line, std::string_view input = "") {
  ScratchFolder scratch;
  scratch.write("in", input);
  const std::string command = "MULTIHEAD='" + tool_file() + "'; { " + line + "\n} <'" + scratch / "in" +
                              "' >'" + scratch / "out" + "' 2>'" + scratch / "err" + "'";
  const int status = std::system(command.c_str());
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = scratch.read("out"),
          .err = scratch.read("err")};
}

/// `arguments` as typed in a shell, after "multihead".
inline ToolResult run_tool(const std::string& arguments, std::string_view input = "") {
  return run_shell("\"$MULTIHEAD\" " + arguments, input);
}

}  // namespace mh

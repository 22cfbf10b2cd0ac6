// Runs the built tool as a user would: arguments and standard input in, exit status and both outputs back.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace mh {

/// A folder of its own for each test, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    static std::atomic<int> number = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("multihead_cli_test_" + std::to_string(getpid()) + "_" + std::to_string(number++));
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  std::string write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return *this / name;
  }
  std::string read(std::string_view name) const {
    std::ifstream file(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  std::filesystem::path path_;
};

struct ToolResult {
  int status = -1;
  std::string out, err;
};

/// A line of shell, in which $MULTIHEAD is the tool; it may redirect the streams elsewhere.
inline ToolResult run_shell(const std::string& line, std::string_view input = "") {
  ScratchFolder scratch;
  scratch.write("in", input);
  const std::string command = "MULTIHEAD='" MULTIHEAD_BINARY "'; { " + line + "\n} <'" + scratch / "in" +
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

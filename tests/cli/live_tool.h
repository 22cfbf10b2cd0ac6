// The built tool while it runs: the test writes to its standard input and reads its answers one by one.
#pragma once

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/places.h"

namespace mh {

class LiveTool {
 public:
  enum class Input { kPipe, kTerminal };

  LiveTool(const std::vector<std::string>& arguments, Input kind) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    if (kind == Input::kPipe) {
      EXPECT_EQ(::pipe(in), 0);
    } else {
      EXPECT_EQ(::openpty(&in[1], &in[0], nullptr, nullptr, nullptr), 0);
    }
    EXPECT_EQ(::pipe(out), 0);
    EXPECT_EQ(::pipe(err), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(err[1], STDERR_FILENO);
      for (const int fd : {in[0], in[1], out[0], out[1], err[0], err[1]}) ::close(fd);
      std::vector<char*> argv{const_cast<char*>("multihead")};
      for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      ::execv(tool_file().c_str(), argv.data());
      ::_exit(127);
    }
    for (const int fd : {in[0], out[1], err[1]}) ::close(fd);
    in_ = in[1], out_ = out[0], err_ = err[0];
  }
  ~LiveTool() {
    close_input();
    if (child_ > 0) {
      int status = 0;
      ::waitpid(child_, &status, 0);
    }
    ::close(out_);
    ::close(err_);
  }
  LiveTool(const LiveTool&) = delete;
  LiveTool& operator=(const LiveTool&) = delete;

  void write(std::string_view bytes) const {
    EXPECT_EQ(::write(in_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void close_input() {
    if (in_ >= 0) ::close(in_);
    in_ = -1;
  }
  /// Waits for it; without its line end. Empty at the end of the output.
  std::string line() const { return line_from(out_); }
  std::string error_line() const { return line_from(err_); }
  int exit_status() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  static std::string line_from(int fd) {
    std::string line;
    for (char c = 0; ::read(fd, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  pid_t child_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
};

}  // namespace mh

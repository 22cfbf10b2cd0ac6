#include "cli/run_python.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "multihead/base/error.h"
#include "multihead/base/file.h"

namespace mh::cli {
namespace {

std::string last_line_of(const std::string& text) {
  const size_t end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return {};
  const size_t before = text.find_last_of('\n', end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

/// Starts it with both outputs in files and returns how it ended (wait()).
int ended_of(const std::string& python, const std::vector<std::string>& words, const std::string& errors) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, python.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw Error(fmt::format("cannot run {}: {}; name a Python with torch and transformers with --python",
                            python, std::strerror(failed)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

void run_python(const std::string& python, std::string_view script, const std::vector<std::string>& arguments,
                const std::filesystem::path& scratch) {
  const std::filesystem::path program = scratch / "program.py", errors = scratch / "errors.txt";
  write_file_atomically(program, script);
  std::vector<std::string> words = {python, program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const int status = ended_of(python, words, errors.string());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFSIGNALED(status)) {
    throw Error(fmt::format("{} was ended by signal {}{}", python, WTERMSIG(status),
                            WTERMSIG(status) == SIGKILL ? "; was there too little memory?" : ""));
  }
  const std::string line = last_line_of(read_file(errors));
  throw Error(line.empty() ? fmt::format("{} ended with status {}", python, WEXITSTATUS(status)) : line);
}

}  // namespace mh::cli

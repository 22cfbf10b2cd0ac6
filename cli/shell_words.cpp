#include "cli/shell_words.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace mh::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProgram = "multihead";

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./,:=+@%").find(c) != std::string_view::npos;
}

// The first program of that name in PATH, as the shell finds it; empty when there is none.
fs::path found_in_path() {
  const char* given = std::getenv("PATH");
  std::string_view folders = given ? given : "";
  while (!folders.empty()) {
    const size_t end = std::min(folders.find(':'), folders.size());
    const std::string_view folder = folders.substr(0, end);
    folders.remove_prefix(std::min(end + 1, folders.size()));
    fs::path program = fs::path(folder.empty() ? "." : folder) / kProgram;
    std::error_code error;
    if (fs::is_regular_file(program, error) && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

}  // namespace

std::string shell_word(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string this_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error || program.empty()) return std::string(kProgram);
  const fs::path found = found_in_path();
  if (!found.empty() && fs::equivalent(found, program, error) && !error) return std::string(kProgram);
  std::string path = program.string();
  const fs::path current = fs::current_path(error);
  if (!error) {
    std::string relative = program.lexically_relative(current).string();
    // A name without a slash would be looked for in PATH.
    if (!relative.empty() && relative.find('/') == std::string::npos) relative.insert(0, "./");
    if (!relative.empty() && relative.size() < path.size()) path = relative;
  }
  return shell_word(path);
}

}  // namespace mh::cli

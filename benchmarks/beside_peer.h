// Shared by the programs that run beside a peer, another library (benchmarks/peers): they read commands
// from standard input and answer each with one line, so that the two take turns on the same work.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "multihead/base/error.h"

namespace mh {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The most memory this process ever held, in MiB. getrusage() would count what the parent held when it made
/// it.
inline double peak_mebibytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

/// Answers each command of standard input with a number. answer(what, rest): the command's first word, and what
/// follows it.
template <class Answer>
int answer_commands(Answer&& answer) {
  for (std::string line, what; std::getline(std::cin, line);) {
    std::istringstream words(line);
    words >> what;
    std::printf("%.9f\n", answer(what, words));
    std::fflush(stdout);
  }
  return 0;
}

/// main() of such a program.
inline int run_beside_peer(const char* name, int (*run)(int, char**), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace mh

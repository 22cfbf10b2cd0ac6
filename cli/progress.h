// A counter on standard error, for people who watch: only on a terminal, never with --quiet.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace mh::cli {

class Progress {
 public:
  /// "translated 120 of 1000 sentences, 300/s": verb "translated", things "sentences".
  Progress(std::string verb, std::string things, int64_t all);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(int64_t done);

 private:
  std::string verb_, things_;
  int64_t all_;
  bool wanted_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace mh::cli

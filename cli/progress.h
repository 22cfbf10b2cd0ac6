// A counter on standard error, for people who watch: only on a terminal, never with --quiet.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace mh::cli {

class Progress {
 public:
  /// "translated 120 of 1000 sentences, 300/s": verb "translated", things "sentences"; "translated 120
  /// sentences, 300/s" while nobody knows how many there are.
  Progress(std::string verb, std::string things, std::optional<int64_t> all = std::nullopt);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(int64_t done);
  /// From now on it is known how many there are in all.
  void expect(int64_t all) { all_ = all; }
  /// Removes what it shows, before something else is written to the terminal.
  void clear();

 private:
  std::string verb_, things_;
  std::optional<int64_t> all_;
  bool wanted_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace mh::cli

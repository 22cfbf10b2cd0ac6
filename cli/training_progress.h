// How far a training is, on standard error: one line redrawn on a terminal, lines now and then elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "multihead/train/translator/train_translator.h"

namespace mh::cli {

/// When the next line is due, in a log that has no terminal: after 1, 10, 100 and 1000 updates of this process,
/// so that a short run says something; and by time in pauses that double from 2 s up to 30 s, so that a long log
/// stays short.
class LogPace {
 public:
  using Clock = std::chrono::steady_clock;
  /// updates: made by this process, from 1.
  bool due(int64_t updates, Clock::time_point now);

 private:
  Clock::duration pause_ = std::chrono::seconds(2);
  Clock::time_point last_{};
  int64_t next_count_ = 1;
};

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const TrainingProgress& progress);
  /// A line that stays.
  void say(const std::string& line);

 private:
  bool due();
  void clear();

  const bool terminal_;
  bool drawn_ = false;
  int64_t updates_ = 0;  // of this process
  LogPace pace_;
  LogPace::Clock::time_point last_{};
};

}  // namespace mh::cli

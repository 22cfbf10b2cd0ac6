#include "cli/training_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/common.h"

namespace mh::cli {
namespace {

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

}  // namespace

bool LogPace::due(int64_t updates, Clock::time_point now) {
  constexpr int64_t kLastCount = 1000;
  constexpr Clock::duration kLongestPause = std::chrono::seconds(30);
  const bool by_count = updates >= next_count_ && next_count_ <= kLastCount;
  const bool by_time = updates > 1 && now - last_ >= pause_;
  if (!by_count && !by_time) return false;
  if (by_count) next_count_ *= 10;
  if (by_time) pause_ = std::min(2 * pause_, kLongestPause);
  last_ = now;
  return true;
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  clear();
}

bool ProgressLine::due() {
  const auto now = LogPace::Clock::now();
  ++updates_;
  if (!terminal_) return pace_.due(updates_, now);
  constexpr std::chrono::milliseconds kRedraw{200};
  if (updates_ > 1 && now - last_ < kRedraw) return false;
  last_ = now;
  return true;
}

void ProgressLine::show(const TrainingProgress& progress) {
  if (quiet() || !due()) return;
  std::string line = fmt::format("update {}", progress.update);
  if (progress.updates > 0) line += fmt::format(" of {}", progress.updates);
  line += fmt::format(", epoch {}, loss {:.3f}, {:.0f} tokens/s", progress.epoch, progress.loss,
                      progress.target_tokens_per_second);
  if (progress.seconds_left) line += fmt::format(", {} left", clock_text(*progress.seconds_left));
  if (terminal_) {
    to_stderr(fmt::format("\r{}\x1b[K", line));
    drawn_ = true;
  } else {
    to_stderr(line + "\n");
  }
}

void ProgressLine::say(const std::string& line) {
  if (quiet()) return;
  clear();
  to_stderr(line + "\n");
}

void ProgressLine::clear() {
  if (drawn_) to_stderr("\r\x1b[K");
  drawn_ = false;
}

}  // namespace mh::cli

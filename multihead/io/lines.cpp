#include "multihead/io/lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/stop.h"
#include "multihead/io/line_splitter.h"

namespace mh {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBuffer = 1 << 16;
// So few bytes at a time, since gzip makes up to a thousand bytes of one: at most 2 MiB come at once.
constexpr size_t kSlice = 1 << 11;

}  // namespace

struct LineReader::State {
  State(int given, bool own, std::string_view called, const TextLimits& limits)
      : descriptor(given), owned(own), name(called), splitter(called, limits) {}
  void look_at_descriptor() {
    struct stat info {};
    if (::fstat(descriptor, &info) != 0) throw_cannot_read(name, errno);
    if (S_ISDIR(info.st_mode)) throw_cannot_read(name, EISDIR);
    comes_at_once = S_ISREG(info.st_mode);
  }
  ~State() {
    if (owned) ::close(descriptor);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Whether there is something to read, or the end, before `time`; without one it is waited for.
  bool has_more(std::optional<Clock::time_point> time) const {
    if (begin < end || comes_at_once) return true;
    while (true) {
      int patience = -1;
      if (time) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*time - Clock::now()).count();
        patience = static_cast<int>(std::max<int64_t>(left, 0));
      }
      pollfd asked{.fd = descriptor, .events = POLLIN, .revents = 0};
      const int found = ::poll(&asked, 1, patience);
      if (found < 0 && errno == EINTR) continue;
      return found != 0;
    }
  }

  void fill() {
    while (true) {
      const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) {  // somebody has made the pipe one that does not wait
        has_more(std::nullopt);
        continue;
      }
      if (got < 0) throw_cannot_read(name, errno);
      begin = 0;
      end = static_cast<size_t>(got);
      return;
    }
  }

  void advance(std::vector<std::string>& lines) {
    throw_if_stopped();
    if (begin == end) fill();
    if (begin == end) {
      ended = true;
      splitter.finish(lines);
      return;
    }
    const size_t size = std::min(end - begin, kSlice);
    splitter.feed({buffer + begin, size}, lines);
    begin += size;
  }

  int descriptor;
  bool owned;
  std::string name;
  LineSplitter splitter;
  bool comes_at_once = false;  // a file: there is nothing to wait for
  bool ended = false;
  size_t begin = 0, end = 0;  // of what `buffer` holds
  char buffer[kBuffer];
};

LineReader::LineReader(const std::filesystem::path& path, const TextLimits& limits) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_cannot_read(path.native(), errno);
  state_ = std::make_unique<State>(descriptor, true, path.native(), limits);
  state_->look_at_descriptor();
}

LineReader::LineReader(int descriptor, std::string_view name, const TextLimits& limits)
    : state_(std::make_unique<State>(descriptor, false, name, limits)) {
  state_->look_at_descriptor();
}

LineReader::~LineReader() = default;

std::vector<std::string> LineReader::next(const LineBlock& block) {
  std::vector<std::string> lines;
  size_t counted = 0, bytes = 0;
  std::optional<Clock::time_point> until;
  while (!state_->ended) {
    if (!lines.empty()) {
      for (; counted < lines.size(); ++counted) bytes += lines[counted].size();
      if (lines.size() >= block.max_lines || bytes >= block.max_bytes) break;
      if (!until) until = Clock::now() + block.wait;
      if (!state_->has_more(until)) break;
    }
    state_->advance(lines);
  }
  return lines;
}

std::vector<std::string> LineReader::rest() {
  std::vector<std::string> lines;
  while (!state_->ended) state_->advance(lines);
  return lines;
}

bool LineReader::ended() const {
  return state_->ended;
}

bool LineReader::is_terminal() const {
  return ::isatty(state_->descriptor) == 1;
}

std::vector<std::string> split_lines(std::string_view bytes, std::string_view name,
                                     const TextLimits& limits) {
  std::vector<std::string> lines;
  LineSplitter splitter(name, limits);
  splitter.feed(bytes, lines);
  splitter.finish(lines);
  return lines;
}

std::vector<std::string> read_lines(const std::filesystem::path& path, const TextLimits& limits) {
  return LineReader(path, limits).rest();
}

}  // namespace mh

// Text in lines: files, pipes and bytes, gzip or not, become one string a line. One reader for all of them:
// it gives lines as they come, checks that they are UTF-8, and keeps to limits, so that no input takes all
// memory before it is refused.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// Whether a line has no text.
inline bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

struct TextLimits {
  int64_t max_line_characters = 1'000'000;  // Unicode code points of a line
  int64_t max_unpacked = int64_t{8} << 30;  // bytes that the gzip data of one input may unpack to

  template <class V>
  void visit(V& v) {
    constexpr int64_t kMost = int64_t{1} << 50;  // more than any file has
    v("max_line_characters", max_line_characters, {.low = 1, .high = kMost},
      {.group = "Text", .help = "Refuse text with a longer line"});
    v("max_unpacked", max_unpacked, {.low = 1, .high = kMost},
      {.group = "Text", .help = "Refuse a gzip file that unpacks to more bytes"});
  }
};

/// The lines of a file, plain or gzip (told by its first bytes), without their "\n" or "\r\n". A last line
/// needs no line end; an empty file has no lines; a byte order mark at the beginning is no text. Throws
/// FileError when the file cannot be read, FormatError when it is not UTF-8 (naming the line), when its gzip
/// data is cut short or damaged, or when it is beyond the limits.
std::vector<std::string> read_lines(const std::filesystem::path& path, const TextLimits& limits = {});

/// The same for bytes that are here already; `name` is what errors call them.
std::vector<std::string> split_lines(std::string_view bytes, std::string_view name,
                                     const TextLimits& limits = {});

/// How many lines are read at once, and how long it may take.
struct LineBlock {
  size_t max_lines = 100'000;
  size_t max_bytes = 16 << 20;
  /// Of a pipe or a terminal: once there is a line, this long is waited for more.
  std::chrono::milliseconds wait{100};
};

/// Reads the lines of a file, a pipe or a terminal block by block, as read_lines() does.
class LineReader {
 public:
  /// Throws FileError.
  explicit LineReader(const std::filesystem::path& path, const TextLimits& limits = {});
  /// What there is still to read from an open descriptor, e.g. 0, standard input, which stays open.
  LineReader(int descriptor, std::string_view name, const TextLimits& limits = {});
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// The next lines: at least one, unless the input has ended. Waits for the first as long as it takes.
  std::vector<std::string> next(const LineBlock& block = {});
  /// All lines that there are still.
  std::vector<std::string> rest();
  /// The input has ended, and all of its lines were given.
  bool ended() const;
  /// It is a terminal, where somebody types and waits for an answer.
  bool is_terminal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mh

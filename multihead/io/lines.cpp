#include "multihead/io/lines.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/utf8.h"

namespace mh {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors begin UTF-8 with it

bool begins_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

class Inflater {
 public:
  explicit Inflater(std::string_view name) : name_(name) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw Error("zlib: out of memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends one member's contents; returns how many bytes of `packed` it took.
  size_t unpack_member(std::string_view packed, std::string& contents) {
    inflateReset(&stream_);
    size_t taken = 0;
    char buffer[1 << 16];
    for (;;) {
      const size_t limit = std::numeric_limits<uInt>::max();  // zlib counts in 32 bits
      const auto offered = static_cast<uInt>(std::min(packed.size() - taken, limit));
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + taken));
      stream_.avail_in = offered;
      stream_.next_out = reinterpret_cast<Bytef*>(buffer);
      stream_.avail_out = sizeof buffer;
      const int state = inflate(&stream_, Z_NO_FLUSH);
      taken += offered - stream_.avail_in;
      const size_t made = sizeof buffer - stream_.avail_out;
      contents.append(buffer, made);
      if (state == Z_STREAM_END) return taken;
      if (state == Z_BUF_ERROR || (state == Z_OK && made == 0 && taken == packed.size())) {
        throw FormatError(
            fmt::format("{}: gzip data ends too early; copy or download the file again", name_));
      }
      if (state != Z_OK) {
        throw FormatError(fmt::format("{}: damaged gzip data ({}); copy or download the file again", name_,
                                      stream_.msg != nullptr ? stream_.msg : "no detail"));
      }
    }
  }

 private:
  std::string_view name_;
  z_stream stream_{};
};

void check_utf8(std::string_view bytes, std::string_view name) {
  const size_t at = first_invalid_utf8(bytes);
  if (at == std::string_view::npos) return;
  const auto before = bytes.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  throw FormatError(
      fmt::format("{}: line {}: byte {} (0x{:02x}) is not UTF-8; convert the file, e.g. with iconv", name,
                  line, at - start + 1, static_cast<unsigned char>(bytes[at])));
}

}  // namespace

std::string unpack_gzip(std::string&& bytes, std::string_view name) {
  if (!begins_gzip(bytes)) return std::move(bytes);
  Inflater inflater(name);
  std::string contents;
  std::string_view rest = bytes;
  while (begins_gzip(rest)) rest.remove_prefix(inflater.unpack_member(rest, contents));
  // Tapes and some tools fill the last block with zeros; anything else means that something went wrong.
  if (rest.find_first_not_of('\0') != std::string_view::npos) {
    throw FormatError(
        fmt::format("{}: {} bytes that are not gzip data follow its gzip data", name, rest.size()));
  }
  return contents;
}

std::vector<std::string> split_lines(std::string&& bytes, std::string_view name) {
  std::string text = unpack_gzip(std::move(bytes), name);
  check_utf8(text, name);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  std::vector<std::string> lines;
  lines.reserve(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t newline = text.find('\n', begin);
    size_t end = std::min(newline, text.size());
    const size_t next = end + 1;
    if (newline != std::string::npos && end > begin && text[end - 1] == '\r') --end;
    lines.emplace_back(text, begin, end - begin);
    begin = next;
  }
  return lines;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  return split_lines(read_file(path), path.string());
}

}  // namespace mh

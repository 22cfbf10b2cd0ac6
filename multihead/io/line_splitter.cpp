#include "multihead/io/line_splitter.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"

namespace mh {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors begin UTF-8 with it
constexpr std::string_view kGzipMagic = "\x1f\x8b";          // gzip data begins with it
// Deflate makes up to 1032 bytes of one, of text three to ten; what is packed tighter says hardly anything.
constexpr int64_t kMostRatio = 400, kUnpackedAnyway = int64_t{64} << 20;
// Of a line that has not ended: a byte order mark and "\r" are not counted in the end.
constexpr int64_t kUncounted = 2;

int64_t characters_of(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

/// zlib's state for one gzip member after the other.
class Inflater {
 public:
  Inflater() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw Error("zlib: out of memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  void begin_member() { inflateReset(&stream_); }

  struct Piece {
    std::string_view text;  // until the next call
    size_t taken = 0;       // bytes of what was offered
    bool member_ended = false;
  };
  /// The next piece of what `packed` unpacks to; no text and nothing taken when all of it was.
  Piece next(std::string_view packed, std::string_view name) {
    const size_t limit = std::numeric_limits<uInt>::max();  // zlib counts in 32 bits
    const auto offered = static_cast<uInt>(std::min(packed.size(), limit));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = offered;
    stream_.next_out = reinterpret_cast<Bytef*>(buffer_);
    stream_.avail_out = sizeof buffer_;
    const int state = inflate(&stream_, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) {
      throw FormatError(fmt::format("{}: damaged gzip data ({}); copy or download the file again", name,
                                    stream_.msg != nullptr ? stream_.msg : "no detail"));
    }
    return {.text = std::string_view(buffer_, sizeof buffer_ - stream_.avail_out),
            .taken = offered - stream_.avail_in,
            .member_ended = state == Z_STREAM_END};
  }

 private:
  z_stream stream_{};
  char buffer_[1 << 16];
};

LineSplitter::LineSplitter(std::string_view name, const TextLimits& limits) : name_(name), limits_(limits) {}
LineSplitter::~LineSplitter() = default;

void LineSplitter::feed(std::string_view bytes, std::vector<std::string>& lines) {
  while (!bytes.empty()) bytes.remove_prefix(take(bytes, lines));
}

// Returns how many bytes it took; none when it has only found out what they are.
size_t LineSplitter::take(std::string_view bytes, std::vector<std::string>& lines) {
  switch (packing_) {
    case Packing::kNone:
      split(bytes, lines);
      return bytes.size();
    case Packing::kMember:
      return unpack(bytes, lines);
    case Packing::kPadding:
      if (bytes.find_first_not_of('\0') == std::string_view::npos) return bytes.size();
      throw FormatError(fmt::format("{}: bytes that are not gzip data follow its gzip data", name_));
    case Packing::kUnknown:
    case Packing::kBetween:
      break;
  }
  if (!half_magic_ && bytes[0] == kGzipMagic[0]) {
    half_magic_ = true;
    return 1;
  }
  if (half_magic_ && bytes[0] == kGzipMagic[1]) {
    half_magic_ = false;
    packing_ = Packing::kMember;
    if (!inflater_) inflater_ = std::make_unique<Inflater>();
    inflater_->begin_member();
    unpack(kGzipMagic, lines);
    return 1;
  }
  packing_ = packing_ == Packing::kUnknown ? Packing::kNone : Packing::kPadding;
  if (half_magic_) {
    half_magic_ = false;
    take(kGzipMagic.substr(0, 1), lines);
  }
  return 0;
}

// Returns how many bytes of `packed` belong to this member.
size_t LineSplitter::unpack(std::string_view packed, std::vector<std::string>& lines) {
  size_t taken = 0;
  while (true) {
    const Inflater::Piece piece = inflater_->next(packed.substr(taken), name_);
    taken += piece.taken;
    unpacked_ += static_cast<int64_t>(piece.text.size());
    if (unpacked_ > limits_.max_unpacked) {
      throw FormatError(fmt::format("{} unpacks to more than {} bytes; raise `max_unpacked` if that is meant",
                                    name_, limits_.max_unpacked));
    }
    packed_ += static_cast<int64_t>(piece.taken);
    if (unpacked_ > kUnpackedAnyway && unpacked_ / kMostRatio > packed_)
      throw FormatError(
          fmt::format("{}: its gzip data unpacks to more than {} times its size, as no text does; unpack the "
                      "file if that is meant",
                      name_, kMostRatio));
    split(piece.text, lines);
    if (piece.member_ended) {
      packing_ = Packing::kBetween;
      return taken;
    }
    if (piece.text.empty() && taken == packed.size()) return taken;
  }
}

void LineSplitter::split(std::string_view text, std::vector<std::string>& lines) {
  size_t begin = 0;
  for (size_t newline = text.find('\n'); newline != std::string_view::npos;
       newline = text.find('\n', begin)) {
    std::string_view line = text.substr(begin, newline - begin);
    begin = newline + 1;
    if (!line_.empty()) line = line_ += line;
    ++lines_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(checked(line));
    line_.clear();
    line_characters_ = 0;
  }
  const std::string_view begun = text.substr(begin);
  line_characters_ += characters_of(begun);
  line_ += begun;
  if (line_characters_ > limits_.max_line_characters + kUncounted) {
    ++lines_;
    throw_too_long();
  }
}

void LineSplitter::finish(std::vector<std::string>& lines) {
  if (half_magic_) {
    packing_ = packing_ == Packing::kUnknown ? Packing::kNone : Packing::kPadding;
    half_magic_ = false;
    take(kGzipMagic.substr(0, 1), lines);
  }
  if (packing_ == Packing::kMember) {
    throw FormatError(fmt::format("{}: gzip data ends too early; copy or download the file again", name_));
  }
  if (line_.empty()) return;
  ++lines_;
  if (const std::string_view line = checked(line_); !line.empty()) lines.emplace_back(line);
  line_.clear();
}

// The line without a byte order mark.
std::string_view LineSplitter::checked(std::string_view line) {
  if (const std::string problem = utf8_problem(line); !problem.empty()) {
    throw FormatError(
        fmt::format("{}: line {}: {}; convert the file, e.g. with iconv", name_, lines_, problem));
  }
  if (lines_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (static_cast<int64_t>(line.size()) > limits_.max_line_characters &&
      characters_of(line) > limits_.max_line_characters) {
    throw_too_long();
  }
  return line;
}

void LineSplitter::throw_too_long() const {
  throw FormatError(
      fmt::format("{}: line {} has more than {} characters; break it up, or raise `max_line_characters`",
                  name_, lines_, limits_.max_line_characters));
}

}  // namespace mh

// Bytes in, in pieces of any size; lines out. What lines.h promises of gzip, line ends, UTF-8 and limits is
// done here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/io/lines.h"

namespace mh {

class Inflater;

class LineSplitter {
 public:
  LineSplitter(std::string_view name, const TextLimits& limits);
  ~LineSplitter();
  LineSplitter(const LineSplitter&) = delete;
  LineSplitter& operator=(const LineSplitter&) = delete;

  /// Appends the lines that `bytes` complete. Throws FormatError.
  void feed(std::string_view bytes, std::vector<std::string>& lines);
  /// The bytes have ended: appends a last line without a line end. Throws FormatError when gzip data has not
  /// ended.
  void finish(std::vector<std::string>& lines);

 private:
  enum class Packing {
    kUnknown,  // too few bytes to tell
    kNone,     // plain text
    kMember,   // inside of a gzip member
    kBetween,  // after a member: another one may follow
    kPadding,  // after the last member: tapes and some tools fill their last block with zeros
  };

  size_t take(std::string_view bytes, std::vector<std::string>& lines);
  size_t unpack(std::string_view packed, std::vector<std::string>& lines);
  void split(std::string_view text, std::vector<std::string>& lines);
  std::string_view checked(std::string_view line);
  [[noreturn]] void throw_too_long() const;

  std::string name_;
  TextLimits limits_;
  Packing packing_ = Packing::kUnknown;
  bool half_magic_ = false;  // gzip's first byte has come, and nothing after it
  std::unique_ptr<Inflater> inflater_;
  int64_t packed_ = 0, unpacked_ = 0;  // bytes of gzip data
  std::string line_;                   // begun, without its end
  int64_t line_characters_ = 0;        // of line_
  int64_t lines_ = 0;                  // begun
};

}  // namespace mh

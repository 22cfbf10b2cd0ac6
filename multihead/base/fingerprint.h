// A 64-bit hash that tells whether two pieces of data are the same: FNV-1a (Fowler, Noll and Vo). It does
// not protect against data made to collide.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mh {

class Fingerprint {
 public:
  void add(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001B3; }
  void add(std::string_view text) {
    for (const char c : text) add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
    add(text.size());
  }
  /// 16 hexadecimal digits.
  std::string digits() const {
    std::string text(16, '0');
    for (size_t i = 0; i < text.size(); ++i) text[i] = "0123456789abcdef"[hash_ >> (60 - 4 * i) & 15];
    return text;
  }

 private:
  uint64_t hash_ = 0xCBF29CE484222325;
};

}  // namespace mh

// SHA-256 (FIPS 180-4), by which files and weights are told apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mh {

class Sha256 {
 public:
  void add(std::string_view bytes) { add(bytes.data(), bytes.size()); }
  void add(const void* data, size_t size);
  /// Of all bytes that were added, as 64 hexadecimal digits. Nothing may be added afterwards.
  std::string digest();

 private:
  static constexpr size_t kBlock = 64;
  void add_block(const unsigned char* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, kBlock> pending_ = {};
  uint64_t size_ = 0;
};

}  // namespace mh

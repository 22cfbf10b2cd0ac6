// The numbers of a page and how they are packed (docs/file-formats.md, "The data of a page").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mh {

class PageNumbers {
 public:
  /// Where numbers lie, in bytes from the beginning of all.
  struct Block {
    size_t offset = 0, bytes = 0;
  };

  /// As they are, little-endian.
  template <class T>
  Block add(std::span<const T> numbers) {
    return add_bytes(numbers.data(), numbers.size_bytes());
  }
  /// As float16.
  Block add_halves(std::span<const float> numbers);

  const std::string& bytes() const { return bytes_; }

 private:
  Block add_bytes(const void* data, size_t size);

  std::string bytes_;
};

/// In zlib's format.
std::string deflated(std::string_view bytes);
/// The length of the header, the header and the numbers: deflated, in base64.
std::string packed_page(std::string_view header, std::string_view numbers);

}  // namespace mh

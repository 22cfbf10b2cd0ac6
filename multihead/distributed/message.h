// Numbers and texts as bytes, for ProcessGroup::agree(). Ranks have the same version and byte order.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "multihead/base/error.h"

namespace mh {

class MessageWriter {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  void add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add(std::string_view text) {
    add(static_cast<uint64_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  void add(std::span<const T> values) {
    add(std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads in the order of writing. Throws InternalError where the bytes end too early.
class MessageReader {
 public:
  /// REQUIRES: the bytes outlive this.
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(number<uint64_t>()); }
  template <class T>
    requires std::is_arithmetic_v<T>
  std::vector<T> numbers() {
    const std::string_view bytes = text();
    MH_ASSERT(bytes.size() % sizeof(T) == 0);
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view take(uint64_t size) {
    MH_ASSERT(size <= rest_.size());
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace mh

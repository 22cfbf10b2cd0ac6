// A value of GGUF's metadata where it stands in the file (gguf.h has the format).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mh {

/// The types of values, with their numbers in the file.
enum class GgufValueType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kList,
  kU64,
  kI64,
  kF64
};
inline constexpr uint32_t kGgufValueTypes = 13;
/// "u8", "text", "a list".
const char* gguf_value_name(GgufValueType type);
/// Bytes of a value; 0: of no fixed size.
uint64_t gguf_value_size(GgufValueType type);

/// A number, flag or text where it stands in the file. REQUIRES: it lies within the file as a whole.
struct GgufItem {
  GgufValueType type = GgufValueType::kU8;
  const std::byte* at = nullptr;

  /// The integer; nothing for other types and beyond 63 bits.
  std::optional<int64_t> integer() const;
  /// The integer or floating-point number; nothing for other types.
  std::optional<double> number() const;
  /// REQUIRES: it is a text.
  std::string_view text() const;
  /// What it is, in a few words, for messages.
  std::string describe() const;
};

/// A value of the metadata. Of a list, `value` is the first item, which may not be there.
struct GgufValue {
  std::string_view key;
  bool is_list = false;
  uint64_t items = 1;
  GgufItem value;
  std::span<const std::byte> bytes = {};  // its type and itself, as they stand in the file
};

}  // namespace mh

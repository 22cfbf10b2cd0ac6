#include "multihead/io/gguf_value.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <type_traits>
#include <utility>

#include "multihead/io/strict_json.h"

namespace mh {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are copied as they are");

struct ValueTypeFacts {
  const char* name;
  uint64_t size;
};
constexpr std::array<ValueTypeFacts, kGgufValueTypes> kValueTypes = {{{"u8", 1},
                                                                      {"i8", 1},
                                                                      {"u16", 2},
                                                                      {"i16", 2},
                                                                      {"u32", 4},
                                                                      {"i32", 4},
                                                                      {"f32", 4},
                                                                      {"bool", 1},
                                                                      {"text", 0},
                                                                      {"a list", 0},
                                                                      {"u64", 8},
                                                                      {"i64", 8},
                                                                      {"f64", 8}}};

template <class T>
T number_at(const std::byte* at) {
  T number{};
  std::memcpy(&number, at, sizeof number);
  return number;
}

/// Calls take(number) with the number, if the item is one.
template <class Take>
void take_number(const GgufItem& item, Take take) {
  switch (item.type) {
    case GgufValueType::kU8:
      return take(number_at<uint8_t>(item.at));
    case GgufValueType::kI8:
      return take(number_at<int8_t>(item.at));
    case GgufValueType::kU16:
      return take(number_at<uint16_t>(item.at));
    case GgufValueType::kI16:
      return take(number_at<int16_t>(item.at));
    case GgufValueType::kU32:
      return take(number_at<uint32_t>(item.at));
    case GgufValueType::kI32:
      return take(number_at<int32_t>(item.at));
    case GgufValueType::kF32:
      return take(number_at<float>(item.at));
    case GgufValueType::kU64:
      return take(number_at<uint64_t>(item.at));
    case GgufValueType::kI64:
      return take(number_at<int64_t>(item.at));
    case GgufValueType::kF64:
      return take(number_at<double>(item.at));
    case GgufValueType::kBool:
    case GgufValueType::kText:
    case GgufValueType::kList:
      return;
  }
}

}  // namespace

const char* gguf_value_name(GgufValueType type) {
  return kValueTypes[static_cast<uint32_t>(type)].name;
}
uint64_t gguf_value_size(GgufValueType type) {
  return kValueTypes[static_cast<uint32_t>(type)].size;
}

std::optional<int64_t> GgufItem::integer() const {
  std::optional<int64_t> found;
  take_number(*this, [&](auto number) {
    if constexpr (std::is_integral_v<decltype(number)>) {
      if (std::in_range<int64_t>(number)) found = static_cast<int64_t>(number);
    }
  });
  return found;
}

std::optional<double> GgufItem::number() const {
  std::optional<double> found;
  take_number(*this, [&](auto number) { found = static_cast<double>(number); });
  return found;
}

std::string_view GgufItem::text() const {
  return {reinterpret_cast<const char*>(at) + sizeof(uint64_t), static_cast<size_t>(number_at<uint64_t>(at))};
}

std::string GgufItem::describe() const {
  std::string what = type == GgufValueType::kText ? json_excerpt(std::string(text())) : gguf_value_name(type);
  take_number(*this, [&](auto number) { what = fmt::format("{}", number); });
  return what;
}

}  // namespace mh

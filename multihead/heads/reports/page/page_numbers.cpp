#include "multihead/heads/reports/page/page_numbers.h"

#include <zlib.h>

#include <bit>
#include <cstring>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/text/base64.h"

namespace mh {
namespace {

static_assert(std::endian::native == std::endian::little, "a page's numbers are little-endian");
constexpr size_t kAlignment = 8;

void fill_up(std::string& bytes) {
  bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

PageNumbers::Block PageNumbers::add_bytes(const void* data, size_t size) {
  fill_up(bytes_);
  const size_t offset = bytes_.size();
  bytes_.append(static_cast<const char*>(data), size);
  return {.offset = offset, .bytes = size};
}

PageNumbers::Block PageNumbers::add_halves(std::span<const float> numbers) {
  std::vector<uint16_t> halves(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) halves[i] = to_float16(numbers[i]);
  return add(std::span<const uint16_t>(halves));
}

std::string deflated(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string to(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(to.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                bytes.size(), Z_DEFAULT_COMPRESSION) != Z_OK)
    throw Error("a page's data could not be deflated");
  to.resize(size);
  return to;
}

std::string packed_page(std::string_view header, std::string_view numbers) {
  const auto length = static_cast<uint32_t>(header.size());
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes += header;
  fill_up(bytes);
  bytes += numbers;
  return to_base64(deflated(bytes));
}

}  // namespace mh

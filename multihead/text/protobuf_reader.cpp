#include "multihead/text/protobuf_reader.h"

#include <fmt/format.h>

#include <bit>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"

namespace mh {

using Wire = ProtobufReader::Field::Wire;

void ProtobufReader::fail(std::string_view what) const {
  throw FormatError(fmt::format("{}: {}", name_, what));
}

uint64_t ProtobufReader::variable_number() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail("not a SentencePiece model: a number of more than 10 bytes");
}

std::string_view ProtobufReader::take(uint64_t size) {
  if (size > rest_.size()) {
    fail(fmt::format("not a SentencePiece model, or cut short: {} bytes expected, {} left", size,
                     rest_.size()));
  }
  const std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

bool ProtobufReader::next(Field& field) {
  if (rest_.empty()) return false;
  const uint64_t key = variable_number();
  field = {.number = key >> 3};
  switch (key & 7) {
    case 0:
      field.value = variable_number();
      return true;
    case 1:
      field.wire = Wire::kEightBytes;
      field.bytes = take(8);
      return true;
    case 2:
      field.wire = Wire::kBytes;
      field.bytes = take(variable_number());
      return true;
    case 5:
      field.wire = Wire::kFourBytes;
      field.bytes = take(4);
      return true;
    default:
      fail(fmt::format("not a SentencePiece model: field {} has the wire type {}", field.number, key & 7));
  }
}

uint64_t ProtobufReader::number(const Field& field) const {
  if (field.wire != Wire::kNumber)
    fail(fmt::format("not a SentencePiece model: field {} is no number", field.number));
  return field.value;
}

float ProtobufReader::real(const Field& field) const {
  if (field.wire != Wire::kFourBytes)
    fail(fmt::format("not a SentencePiece model: field {} is no float", field.number));
  uint32_t bits = 0;
  for (size_t i = 4; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(field.bytes[i]);
  return std::bit_cast<float>(bits);
}

std::string_view ProtobufReader::bytes(const Field& field) const {
  if (field.wire != Wire::kBytes)
    fail(fmt::format("not a SentencePiece model: field {} has no bytes", field.number));
  return field.bytes;
}

std::string ProtobufReader::text(const Field& field) const {
  const std::string_view text = bytes(field);
  if (first_invalid_utf8(text) != std::string_view::npos) {
    fail(fmt::format("field {} of the SentencePiece model is not UTF-8", field.number));
  }
  return std::string(text);
}

}  // namespace mh

#include "multihead/train/event_file.h"

#include <array>
#include <bit>

namespace mh {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u;
}

template <class T>
void append_fixed(std::string& out, T bits) {
  for (size_t byte = 0; byte < sizeof bits; ++byte) out += static_cast<char>(bits >> (8 * byte) & 0xFF);
}

// Protobuf's wire format: a key is field << 3 | wire type.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}
void append_key(std::string& out, uint32_t field, WireType type) {
  append_varint(out, field << 3 | type);
}
void append_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  append_key(out, field, kBytes);
  append_varint(out, bytes.size());
  out += bytes;
}

// Event: wall_time = 1 (double), step = 2 (int64), file_version = 3, summary = 5, session_log = 7.
std::string event_head(double wall_time, int64_t step) {
  std::string out;
  append_key(out, 1, kFixed64);
  append_fixed(out, std::bit_cast<uint64_t>(wall_time));
  if (step != 0) {
    append_key(out, 2, kVarint);
    append_varint(out, static_cast<uint64_t>(step));
  }
  return out;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::string tf_record(std::string_view bytes) {
  std::string out;
  append_fixed(out, static_cast<uint64_t>(bytes.size()));
  append_fixed(out, masked_crc(out));
  out += bytes;
  append_fixed(out, masked_crc(bytes));
  return out;
}

std::string version_event(double wall_time) {
  std::string out = event_head(wall_time, 0);
  append_bytes(out, 3, "brain.Event:2");
  return out;
}

std::string restart_event(double wall_time, int64_t step) {
  std::string log;
  append_key(log, 1, kVarint);  // SessionLog.status = START
  append_varint(log, 1);
  std::string out = event_head(wall_time, step);
  append_bytes(out, 7, log);
  return out;
}

std::string scalars_event(double wall_time, int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;  // Summary.Value: tag = 1, simple_value = 2
    append_bytes(value, 1, scalar.tag);
    append_key(value, 2, kFixed32);
    append_fixed(value, std::bit_cast<uint32_t>(scalar.value));
    append_bytes(summary, 1, value);
  }
  std::string out = event_head(wall_time, step);
  append_bytes(out, 5, summary);
  return out;
}

}  // namespace mh

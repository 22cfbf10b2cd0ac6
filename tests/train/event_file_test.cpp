#include "multihead/train/event_file.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace mh {
namespace {

std::string hex(const std::string& bytes) {
  std::string out;
  for (const unsigned char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    out += kDigits[c >> 4];
    out += kDigits[c & 15];
  }
  return out;
}

// RFC 3720, appendix B.4.
TEST(EventFile, Crc32cOfTheStandard) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventFile, MessagesByteByByte) {
  // wall_time 1.5 = 3ff8000000000000
  EXPECT_EQ(hex(version_event(1.5)),
            "09000000000000f83f"
            "1a0d" +
                hex("brain.Event:2"));
  EXPECT_EQ(hex(restart_event(1.5, 300)),
            "09000000000000f83f"
            "10ac02"
            "3a020801");
  const std::array<Scalar, 2> scalars = {Scalar{"ab", 1.0f}, Scalar{"c", -2.0f}};
  EXPECT_EQ(hex(scalars_event(1.5, 1, scalars)),
            "09000000000000f83f"
            "1001"
            "2a15"
            "0a09"
            "0a026162"
            "150000803f"
            "0a08"
            "0a0163"
            "15000000c0");
}

TEST(EventFile, RecordsCarryLengthAndMaskedSums) {
  const std::string record = tf_record("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(hex(record.substr(0, 8)), "0300000000000000");
  EXPECT_EQ(record.substr(12, 3), "abc");
  const auto unmask = [&](size_t at) {
    uint32_t masked = 0;
    for (size_t i = 0; i < 4; ++i) masked |= uint32_t{static_cast<unsigned char>(record[at + i])} << (8 * i);
    const uint32_t rotated = masked - 0xA282EAD8u;
    return rotated << 15 | rotated >> 17;
  };
  EXPECT_EQ(unmask(8), crc32c(record.substr(0, 8)));
  EXPECT_EQ(unmask(15), crc32c("abc"));
}

}  // namespace
}  // namespace mh

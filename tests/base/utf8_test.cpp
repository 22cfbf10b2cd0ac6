#include "multihead/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace mh {
namespace {

constexpr size_t kAllGood = std::string_view::npos;

// How many characters have so many bytes: all of Unicode without the 2,048 surrogates.
constexpr int kOneByte = 0x80, kTwoBytes = 0x800 - 0x80, kThreeBytes = 0x10000 - 0x800 - 2048;

TEST(Utf8, CountsOfGoodStrings) {
  int good = 0;
  std::string two(2, '\0');
  for (int bytes = 0; bytes < 0x10000; ++bytes) {
    two[0] = static_cast<char>(bytes >> 8);
    two[1] = static_cast<char>(bytes);
    good += first_invalid_utf8(two) == kAllGood;
  }
  EXPECT_EQ(good, kOneByte * kOneByte + kTwoBytes);

  good = 0;
  std::string three(3, '\0');
  for (int bytes = 0xC00000; bytes < 0x1000000; ++bytes) {
    for (int i = 0; i < 3; ++i) three[static_cast<size_t>(i)] = static_cast<char>(bytes >> (16 - 8 * i));
    good += first_invalid_utf8(three) == kAllGood;
  }
  EXPECT_EQ(good, kTwoBytes * kOneByte + kThreeBytes);
}

TEST(Utf8, FourBytesUpTo10FFFF) {
  std::string four(4, '\0');
  for (int lead = 0xF0; lead <= 0xFF; ++lead) {
    for (int second = 0; second < 0x100; ++second) {
      for (const int third : {0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xFF}) {
        for (const int fourth : {0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xFF}) {
          const int bytes[] = {lead, second, third, fourth};
          for (size_t i = 0; i < 4; ++i) four[i] = static_cast<char>(bytes[i]);
          const auto continues = [](int byte) { return (byte & 0xC0) == 0x80; };
          const int number = (lead & 7) << 18 | (second & 63) << 12 | (third & 63) << 6 | (fourth & 63);
          const bool good = lead < 0xF8 && continues(second) && continues(third) && continues(fourth) &&
                            number >= 0x10000 && number <= 0x10FFFF;
          ASSERT_EQ(first_invalid_utf8(four) == kAllGood, good) << std::hex << lead << ' ' << second;
        }
      }
    }
  }
}

TEST(Utf8, ProblemCountsFromOne) {
  EXPECT_EQ(utf8_problem("\u20ac"), "");
  EXPECT_EQ(utf8_problem("\u20ac\x80"), "byte 4 (0x80) is not UTF-8");
}

TEST(Utf8, SaysWhereItBreaks) {
  EXPECT_EQ(first_invalid_utf8(""), kAllGood);
  EXPECT_EQ(first_invalid_utf8(std::string_view("\0", 1)), kAllGood);
  EXPECT_EQ(first_invalid_utf8("ab\u00e4\u20ac\U0001F600z"), kAllGood);
  EXPECT_EQ(first_invalid_utf8("ab\xe4z"), 2u);
  EXPECT_EQ(first_invalid_utf8("\u20ac\x80"), 3u);
  EXPECT_EQ(first_invalid_utf8("a\xe2\x82"), 1u);     // cut short
  EXPECT_EQ(first_invalid_utf8("\xed\xa0\x80"), 0u);  // a surrogate
  EXPECT_EQ(first_invalid_utf8("\xc0\x80"), 0u);      // overlong
  // Around the blocks of eight that are looked at at once.
  for (size_t before = 0; before < 40; ++before) {
    for (size_t after = 0; after < 20; ++after) {
      EXPECT_EQ(first_invalid_utf8(std::string(before, 'x') + "\xff" + std::string(after, 'x')), before);
      EXPECT_EQ(first_invalid_utf8(std::string(before, 'x') + "\u20ac" + std::string(after, 'x')), kAllGood);
    }
  }
}

}  // namespace
}  // namespace mh

// A file with a value of each type, which the `gguf` package wrote (tests/oracles/gguf_types_goldens.py); and files that are
// damaged.
#include "multihead/io/gguf.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hostile.h"
#include "multihead/base/file.h"
#include "tests/io/gguf_bytes.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using test::expect_one_line_error;
using testing::ElementsAre;

const std::filesystem::path kTypes = std::filesystem::path(goldens_folder()) / "gguf";
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

TEST(Gguf, ReadsValuesOfEveryType) {
  const GgufFile file = GgufFile::open(kTypes / "types.gguf");
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.integer("test.u8", kLeast, kMost), 200);
  EXPECT_EQ(file.integer("test.i8", kLeast, kMost), -100);
  EXPECT_EQ(file.integer("test.u16", kLeast, kMost), 60000);
  EXPECT_EQ(file.integer("test.i16", kLeast, kMost), -30000);
  EXPECT_EQ(file.integer("test.u32", kLeast, kMost), 4000000000);
  EXPECT_EQ(file.integer("test.i32", kLeast, kMost), -2000000000);
  EXPECT_EQ(file.integer("test.u64", kLeast, kMost), kMost);
  EXPECT_EQ(file.integer("test.i64", kLeast, kMost), -(int64_t{1} << 62));
  EXPECT_EQ(file.number("test.f32", 0, 1), 0.1f);
  EXPECT_EQ(file.number("test.f64", 0, 1), 0.1);
  EXPECT_EQ(file.number("test.u8", 0, 255), 200);
  EXPECT_EQ(file.flag("test.bool"), true);
  EXPECT_EQ(file.text("test.text"), "grün");
  EXPECT_THAT(*file.texts("test.texts"), ElementsAre("a", "", "日本"));
  EXPECT_THAT(*file.integers("test.numbers"), ElementsAre(3, -1, 2));
  EXPECT_THAT(*file.numbers("test.numbers"), ElementsAre(3, -1, 2));
  EXPECT_EQ(file.items("test.texts"), 3);
  EXPECT_EQ(file.items("none"), 0);
  EXPECT_TRUE(file.contains("test.text"));
  EXPECT_FALSE(file.contains("test.tex"));
  EXPECT_EQ(file.integer("none", 0, 1), std::nullopt);
  EXPECT_EQ(file.texts("none"), std::nullopt);
}

TEST(Gguf, AValueOfAnotherTypeIsNamed) {
  const GgufFile file = GgufFile::open(kTypes / "types.gguf");
  const auto refused = [&](auto&& read, std::string_view part) { expect_one_line_error(read, part, part); };
  refused([&] { file.integer("test.f32", 0, 1); }, "\"test.f32\": expected an integer from 0 to 1, got 0.1");
  refused([&] { file.integer("test.u8", 0, 199); },
          "\"test.u8\": expected an integer from 0 to 199, got 200");
  refused([&] { file.integer("test.numbers", 0, 9); }, "got a list of i32");
  refused([&] { file.number("test.text", 0, 1); }, "expected a number from 0 to 1, got \"grün\"");
  refused([&] { file.flag("test.u8"); }, "expected true or false, got 200");
  refused([&] { file.text("test.bool"); }, "expected a text, got bool");
  refused([&] { file.texts("test.numbers"); }, "expected a list of texts, got a list of i32");
  refused([&] { file.integers("test.texts"); }, "expected a list of integers, got a list of text");
  refused([&] { file.integers("test.u8"); }, "expected a list of integers, got 200");
  refused([&] { file.numbers("test.texts"); }, "expected a list of numbers, got a list of text");
  refused([&] { file.items("test.u8"); }, "\"test.u8\": expected a list, got 200");
}

/// A small right file, and one that differs from it.
class HostileGguf : public testing::Test {
 protected:
  static test::GgufSpec right() {
    test::GgufSpec spec;
    spec.values = {{"general.architecture", test::gguf_string("llama")}, {"a.list", test::gguf_ints({1, 2})}};
    spec.tensors = {test::gguf_zeros("first", {3, 5}), test::gguf_zeros("second", {7})};
    return spec;
  }
  static void expect_refused(const std::string& bytes, std::string_view part) {
    expect_one_line_error([&] { GgufFile::from_bytes(bytes, "file.gguf"); }, part, part);
  }
  static void expect_refused(const std::function<void(test::GgufSpec&)>& change, std::string_view part) {
    test::GgufSpec spec = right();
    change(spec);
    expect_refused(spec.bytes(), part);
  }
};

TEST_F(HostileGguf, TheRightOneIsRead) {
  const GgufFile file = GgufFile::from_bytes(right().bytes(), "file.gguf");
  EXPECT_THAT(file.tensors().at(0).shape, ElementsAre(5, 3));
  EXPECT_EQ(file.tensors().at(1).elements(), 7);
  test::GgufSpec other = right();  // version 2, another alignment, a padding behind the last tensor
  other.version = 2;
  other.alignment = 64;
  other.value("general.alignment") = test::gguf_u32(64);
  EXPECT_NO_THROW(GgufFile::from_bytes(other.bytes() + std::string(64 - 28, '\0'), "file.gguf"));
}

TEST_F(HostileGguf, NoCutIsAccepted) {
  const std::string whole = right().bytes();
  for (size_t length = 0; length < whole.size(); ++length) {
    expect_one_line_error([&] { GgufFile::from_bytes(whole.substr(0, length), "file.gguf"); },
                          "file.gguf: ", std::to_string(length));
  }
  expect_refused(whole + std::string(33, '\0'), "29 bytes are left over");
}

TEST_F(HostileGguf, HeadersThatCannotBe) {
  using test::GgufSpec;
  expect_refused([](GgufSpec& s) { s.magic = "GGML"; }, "not GGUF");
  expect_refused([](GgufSpec& s) { s.version = 1; }, "GGUF version 1; expected 2 or 3");
  expect_refused([](GgufSpec& s) { s.version = 4; }, "GGUF version 4; expected 2 or 3");
  expect_refused([](GgufSpec& s) { s.version = 3u << 24; }, "big-endian");
  expect_refused([](GgufSpec& s) { s.tensor_count = uint64_t{1} << 60; },
                 "the number of tensors: 1152921504606846976");
  expect_refused([](GgufSpec& s) { s.tensor_count = 60000; }, "file.gguf: ");
  expect_refused([](GgufSpec& s) { s.tensor_count = 0; }, "there are no tensors in it");
  expect_refused([](GgufSpec& s) { s.value_count = ~uint64_t{0}; }, "the number of metadata values");
  expect_refused([](GgufSpec& s) { s.value_count = 60000; }, "file.gguf: ");
  expect_refused([](GgufSpec& s) { s.values.push_back(s.values[0]); },
                 "\"general.architecture\" is there twice");
}

TEST_F(HostileGguf, ValuesThatCannotBe) {
  using test::GgufSpec, test::little_endian;
  const auto value = [](std::string bytes, std::string_view part) {
    expect_refused([&](GgufSpec& s) { s.value("a.list") = std::move(bytes); }, part);
  };
  value(little_endian(uint32_t{13}), "\"a.list\": type 13; expected 0 ... 12");
  value(little_endian(~uint32_t{0}), "type 4294967295");
  value(little_endian(uint32_t{8}) + little_endian(~uint64_t{0}), "cut short");
  value(little_endian(uint32_t{8}) + little_endian(uint64_t{1} << 40), "cut short");
  value(test::gguf_string("\xff\xfe"), "\"a.list\" is not UTF-8");
  value(test::gguf_list(4, ~uint64_t{0}, ""), "cut short");
  value(test::gguf_list(10, uint64_t{1} << 61, ""), "cut short");  // times 8 it is 0
  value(test::gguf_list(8, uint64_t{1} << 50, ""), "cut short");
  value(test::gguf_list(9, uint64_t{1} << 50, ""), "cut short");
  value(test::gguf_list(99, 1, "x"), "type 99");
  std::string deep = little_endian(uint32_t{0}) + little_endian(uint64_t{0});
  for (int i = 0; i < 10000; ++i) deep = little_endian(uint32_t{9}) + little_endian(uint64_t{1}) + deep;
  value(little_endian(uint32_t{9}) + deep, "lists in lists");
  expect_refused([](GgufSpec& s) { s.values[0].first = "\xc0"; }, "the key of a metadata value is not UTF-8");
  for (const uint32_t alignment : {0u, 1u, 12u, 1u << 31, ~0u}) {
    expect_refused([&](GgufSpec& s) { s.value("general.alignment") = test::gguf_u32(alignment); },
                   "\"general.alignment\": expected a multiple of 8 from 8 to 1048576");
  }
  expect_refused([](GgufSpec& s) { s.value("general.alignment") = test::gguf_string("32"); }, "got \"32\"");
  expect_refused([](GgufSpec& s) { s.value("general.alignment") = test::gguf_ints({32}); }, "got a list");
  expect_refused([](GgufSpec& s) { s.value("general.alignment") = test::gguf_u32(64); }, "tensor \"second\"");
}

TEST_F(HostileGguf, TensorsThatCannotBe) {
  using test::GgufSpec;
  const auto sizes = [](std::vector<uint64_t> given, std::string_view part) {
    expect_refused([&](GgufSpec& s) { s.tensors[0].sizes = std::move(given); }, part);
  };
  sizes({}, "tensor \"first\": 0 dimensions; expected 1 ... 4");
  sizes({1, 1, 1, 1, 1}, "5 dimensions");
  sizes({3, 0}, "a size of 0; expected at least 1");
  sizes({~uint64_t{0}}, "a size of 18446744073709551615");
  sizes({uint64_t{1} << 32, uint64_t{1} << 32}, "larger than any memory");
  sizes({uint64_t{1} << 62}, "larger than any memory");
  sizes({uint64_t{1} << 40}, "cut short: tensor \"first\" has 4398046511104 bytes");
  sizes({3, 6}, "tensor \"second\": its bytes begin at 64, expected 96");
  const auto type = [](uint32_t given, std::string_view part) {
    expect_refused([&](GgufSpec& s) { s.tensors[0].type = given; }, part);
  };
  type(17,
       "IQ2_XS numbers are not read; expected F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, "
       "Q4_K, Q5_K, "
       "Q6_K, IQ4_NL, IQ4_XS, MXFP4; take the model in one of these types");
  for (const auto& [number, name] : {std::pair{15u, "Q8_K"},
                                     {16u, "IQ2_XXS"},
                                     {18u, "IQ3_XXS"},
                                     {19u, "IQ1_S"},
                                     {21u, "IQ3_S"},
                                     {22u, "IQ2_S"},
                                     {29u, "IQ1_M"},
                                     {34u, "TQ1_0"},
                                     {35u, "TQ2_0"},
                                     {40u, "NVFP4"},
                                     {41u, "Q1_0"}})
    type(number, std::string(name) + " numbers are not read; expected F32");
  type(77, "type 77 numbers are not read");
  type(~0u, "type 4294967295 numbers");
  type(8, "rows of 3 numbers; expected a multiple of 32, the block of Q8_0");
  type(14, "rows of 3 numbers; expected a multiple of 256, the block of Q6_K");
  type(39, "rows of 3 numbers; expected a multiple of 32, the block of MXFP4");
  const auto offset = [](uint64_t given, std::string_view part) {
    expect_refused([&](GgufSpec& s) { s.tensors[1].offset = given; }, part);
  };
  offset(0, "an overlap");
  offset(60, "begin at 60, expected 64");
  offset(128, "a hole");
  offset(~uint64_t{0}, "begin at 18446744073709551615");
  expect_refused([](GgufSpec& s) { s.tensors[1].name = "first"; }, "tensor \"first\" is there twice");
  expect_refused([](GgufSpec& s) { s.tensors[1].name = "\xed\xa0\x80"; },
                 "the name of a tensor is not UTF-8");
  for (const char* name : {"", "line\nline"})
    expect_refused([&](GgufSpec& s) { s.tensors[1].name = name; }, "without control characters");
  expect_refused([](GgufSpec& s) { s.tensors[1].name = std::string(65, 'n'); },
                 "expected a name of 1 ... 64 bytes");
  expect_refused([](GgufSpec& s) { s.tensors[1].data.pop_back(); }, "cut short: tensor \"second\"");
}

TEST_F(HostileGguf, FlippedBitsNeverCrash) {
  const std::string whole = right().bytes();
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      const GgufFile file = GgufFile::from_bytes(flipped, "file.gguf");
      for (const GgufTensor& tensor : file.tensors()) file.floats(tensor);
    } catch (const FormatError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST_F(HostileGguf, FilesThatAreNone) {
  expect_one_line_error([] { GgufFile::open("/nowhere.gguf"); }, "/nowhere.gguf", "missing");
  expect_one_line_error([] { GgufFile::open(kTypes); }, "gguf", "a folder");
  expect_one_line_error([] { GgufFile::open("/dev/zero"); }, "/dev/zero", "a device");
}

}  // namespace
}  // namespace mh

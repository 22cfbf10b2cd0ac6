#include "multihead/io/safetensors.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "hostile.h"
#include "multihead/base/file.h"
#include "tests/io/io_goldens.h"

namespace mh {
namespace {

using test::expect_one_line_error;
using testing::ElementsAre;

constexpr const char* kOddName = "na\u00efve \"name\"\n";

TEST(Safetensors, ReadsEveryTypeOfTheReference) {
  const auto file = SafetensorsFile::open(kIoGoldens / "all_types.safetensors");
  EXPECT_EQ(file.names().size(), 15u);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_THAT(file.shape("f32"), ElementsAre(3, 5));
  EXPECT_EQ(file.floats("f32"), numbers(15));
  EXPECT_THAT(file.shape("f16"), ElementsAre(2, 7));
  EXPECT_EQ(file.floats("f16"), numbers(14));
  EXPECT_EQ(file.floats("bf16"), numbers(33));
  EXPECT_EQ(file.floats("f64"), numbers(5));
  EXPECT_THAT(file.integers("i64"),
              ElementsAre(-3LL << 40, -2LL << 40, -1LL << 40, 0, 1LL << 40, 2LL << 40, 3LL << 40));
  EXPECT_THAT(file.integers("i32"), ElementsAre(-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5));
  EXPECT_THAT(file.integers("i16"), ElementsAre(-2, -1, 0, 1, 2));
  EXPECT_THAT(file.integers("i8"), ElementsAre(-2, -1, 0));
  EXPECT_THAT(file.integers("u8"), ElementsAre(250, 251, 252));
  EXPECT_THAT(file.integers("bool"), ElementsAre(1, 0, 1));
  EXPECT_TRUE(file.shape("scalar").empty());
  EXPECT_THAT(file.floats("scalar"), ElementsAre(2.5f));
  EXPECT_THAT(file.shape("empty"), ElementsAre(0, 3));
  EXPECT_TRUE(file.floats("empty").empty());
  EXPECT_THAT(file.floats(kOddName), ElementsAre(1.5f));
  // Subnormals, the largest, infinities and both zeros of float16.
  const auto halves = file.floats("halves"), expected = file.floats("halves as f32");
  ASSERT_EQ(halves.size(), expected.size());
  for (size_t i = 0; i < halves.size(); ++i) {
    EXPECT_EQ(halves[i], expected[i]) << i;
    EXPECT_EQ(std::signbit(halves[i]), std::signbit(expected[i])) << i;
  }
}

TEST(Safetensors, NamesWhatIsMissingOrOfAnotherType) {
  const auto file = SafetensorsFile::open(kIoGoldens / "all_types.safetensors");
  EXPECT_TRUE(file.contains("f32"));
  EXPECT_FALSE(file.contains("f33"));
  expect_one_line_error([&] { file.floats("f33"); }, "no tensor \"f33\"", "missing");
  expect_one_line_error([&] { file.floats("i64"); }, "got I64", "integers");
  expect_one_line_error([&] { file.integers("f32"); }, "got F32", "floats");
  expect_one_line_error([&] { SafetensorsFile::open(kIoGoldens / "none"); },
                        "No such file or directory; is the name right?", "no file");
  expect_one_line_error([&] { SafetensorsFile::open(kIoGoldens); }, "Is a directory", "a folder");
}

TEST(Safetensors, WritesTheBytesThatTheReferenceWrites) {
  const std::vector<float> weights = numbers(15), bias = numbers(7), odd{1.5f};
  std::vector<float> spaced(3 * 8, NAN);  // rows of 5 that stand 8 apart
  for (int i = 0; i < 15; ++i)
    spaced[static_cast<size_t>(i / 5 * 8 + i % 5)] = weights[static_cast<size_t>(i)];
  const std::vector<int64_t> steps{int64_t{1} << 40, -1};
  const std::vector<int32_t> ids{3, -4};
  std::vector<NamedTensor> tensors{
      {"ids", {2, 1}, std::span<const int32_t>(ids)},
      {"steps", {2}, std::span<const int64_t>(steps)},
      {"encoder.0.w_q", {3, 5}, ConstMatrixView(spaced.data(), 3, 5, 8)},
      {kOddName, {1}, std::span<const float>(odd)},
      {"a.bias", {7}, std::span<const float>(bias)},
  };
  const std::string bytes = write_safetensors(tensors, {{"format", "pt"}});
  EXPECT_EQ(bytes, read_file(kIoGoldens / "ours.safetensors"));
  std::swap(tensors[0], tensors[3]);
  EXPECT_EQ(bytes, write_safetensors(tensors, {{"format", "pt"}}))
      << "the order they come in must not matter";
  std::filesystem::create_directories(kWritten);
  write_file_atomically(kWritten / "ours.safetensors", bytes);  // for tests/oracles/io_goldens.py --check
  write_file_atomically(kWritten / "none.safetensors", write_safetensors({}));
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const std::vector<float> values = numbers(77);
  const NamedTensor tensors[] = {{"x", {7, 11}, std::span<const float>(values)},
                                 {"none", {0}, std::span<const float>()}};
  const auto file =
      SafetensorsFile::from_bytes(write_safetensors(tensors, {{"a", "1"}, {"b", "\u20ac"}}), "memory");
  EXPECT_THAT(file.shape("x"), ElementsAre(7, 11));
  EXPECT_EQ(file.floats("x"), values);
  EXPECT_EQ(file.metadata().at("b"), "\u20ac");
  EXPECT_EQ(file.entry("x").begin % 8, 0u);
  EXPECT_TRUE(SafetensorsFile::from_bytes(write_safetensors({}), "memory").entries().empty());
}

}  // namespace
}  // namespace mh

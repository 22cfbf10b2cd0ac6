// The weights of the model that a live page holds, when they are rounded.
#include "multihead/heads/reports/page/live_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/tensor_files.h"
#include "multihead/heads/reports/page/live_model.h"
#include "multihead/io/safetensors.h"
#include "tests/support/places.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

const fs::path kShards = fs::path(goldens_folder()) / "llama/untied_biased_linear_bf16";

LiveFiles files_of(const fs::path& path) {
  return live_files(load_model_folder(path));
}

TensorFiles tensors_of(const LiveFiles& files) {
  return MemoryFolder({files.begin(), files.end()}, "page").tensors();
}

TEST(LiveWeights, StayWithinHalfAStepOfTheFile) {
  const LiveFiles files = files_of("demo");
  const TensorFiles exact = tensors_of(files);
  const TensorFiles halves = tensors_of(rounded_files(files, LiveNumbers::kFloat16)),
                    integers = tensors_of(rounded_files(files, LiveNumbers::kInt8));
  size_t matrices = 0;
  for (const auto& [name, tensor] : exact.tensors()) {
    const std::vector<float> before = exact.floats(name), half = halves.floats(name),
                             rounded = integers.floats(name);
    ASSERT_EQ(integers.tensor(name).shape, tensor.shape) << name;
    EXPECT_EQ(halves.tensor(name).type, "F16");
    const bool is_integers = integers.tensor(name).type == "I8";
    matrices += is_integers ? 1 : 0;
    for (size_t begin = 0; begin < before.size(); begin += 32) {
      const size_t end = std::min(begin + 32, before.size());
      float largest = 0;
      for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(before[i]));
      for (size_t i = begin; i < end; ++i) {
        ASSERT_EQ(half[i], from_float16(to_float16(before[i]))) << name;
        // A scale is at most a 128th larger than what it need be.
        ASSERT_LE(std::fabs(rounded[i] - before[i]), is_integers ? largest / 127 * 0.504f + 1e-7f : 0)
            << name;
      }
    }
  }
  EXPECT_GT(matrices, 20u);
}

TEST(LiveWeights, TakeTheBytesThatWereSaid) {
  for (const fs::path& path : {fs::path("demo"), kShards}) {
    const LiveFiles files = files_of(path);
    for (const LiveNumbers numbers : {LiveNumbers::kFile, LiveNumbers::kFloat16, LiveNumbers::kInt8}) {
      if (path == kShards && numbers == LiveNumbers::kInt8) continue;  // its rows have no 32 numbers
      size_t bytes = 0;
      for (const auto& [name, file] : rounded_files(files, numbers)) bytes += file.size();
      // But for the header, the index of shards and config.json.
      EXPECT_NEAR(static_cast<double>(rounded_bytes(files, numbers).value()), static_cast<double>(bytes),
                  20'000)
          << path;
    }
  }
}

TEST(LiveWeights, OfShardsAreOneFile) {
  const LiveFiles rounded = rounded_files(files_of(kShards), LiveNumbers::kFloat16);
  EXPECT_TRUE(rounded.contains("model.safetensors"));
  EXPECT_FALSE(rounded.contains("model.safetensors.index.json"));
  for (const auto& [name, bytes] : rounded) EXPECT_FALSE(name.starts_with("model-0")) << name;
}

TEST(LiveWeights, OfTheDemoSayTheSameWords) {
  const ScoredModel model = load_scored_model("demo");
  const HeadsText texts{.sources = {"the small dog sees a cat .", "two men see the old house ."}};
  const LiveFiles files = live_files(model.folder());
  const RoundingError none = rounding_error(model, files, texts);
  EXPECT_EQ(none.of_logits, 0.0);
  EXPECT_EQ(none.texts, 2);
  const RoundingError halves = rounding_error(model, rounded_files(files, LiveNumbers::kFloat16), texts),
                      integers = rounding_error(model, rounded_files(files, LiveNumbers::kInt8), texts);
  EXPECT_GT(halves.of_logits.value(), 0);
  EXPECT_LT(halves.of_logits.value(), 1e-3);
  EXPECT_GT(integers.of_logits.value(), halves.of_logits.value());
  EXPECT_TRUE(integers.same_words);
  EXPECT_FALSE(integers.cosine.has_value());
  check_rounding(integers, LiveNumbers::kInt8);
}

TEST(LiveWeights, ThatAreTooFarFromTheFileAreRefused) {
  const auto refused = [](const RoundingError& error, LiveNumbers numbers, const char* says) {
    EXPECT_THAT([&] { check_rounding(error, numbers); }, ThrowsMessage<UsageError>(HasSubstr(says)));
  };
  refused({.of_logits = 0.0312}, LiveNumbers::kInt8,
          "a logit is off by 3.12 % of their range, more than 1 %; take float16, or file");
  refused({.of_logits = NAN}, LiveNumbers::kFloat16, "a logit is off by nan %");
  refused({.cosine = 0.99677}, LiveNumbers::kInt8, "a vector has the cosine 0.99677 with that of the file");
  refused({.of_logits = 0.0, .same_words = false}, LiveNumbers::kFloat16,
          "other words than that of the file");
  check_rounding({.of_logits = 0.01, .cosine = 0.999}, LiveNumbers::kInt8);
}

/// A model.safetensors of one tensor.
LiveFiles files_with(DType type, std::vector<int64_t> shape, const std::string& bytes) {
  const TensorEntry entry{.name = "w", .dtype = type, .shape = std::move(shape), .end = bytes.size()};
  return {{"config.json", "{}"}, {"model.safetensors", safetensors_header(std::vector{entry}) + bytes}};
}

TEST(LiveWeights, OfNumbersThatDoNotFitAreRefused) {
  const float large = 1e6f;
  const LiveFiles files = files_with(DType::kF32, {1}, {reinterpret_cast<const char*>(&large), sizeof large});
  EXPECT_THAT(
      [&] { rounded_files(files, LiveNumbers::kFloat16); },
      ThrowsMessage<Error>(HasSubstr("tensor w has the number 1000000, which float16 does not hold")));
  EXPECT_THAT([&] { rounded_files(files, LiveNumbers::kInt8); },
              ThrowsMessage<UsageError>(HasSubstr("no matrix whose rows are a multiple of 32 numbers")));
  EXPECT_EQ(rounded_bytes(files, LiveNumbers::kInt8), std::nullopt);
  const LiveFiles gguf = {{"model.gguf", "GGUF"}};
  EXPECT_THAT([&] { rounded_files(gguf, LiveNumbers::kInt8); },
              ThrowsMessage<UsageError>(HasSubstr("model.gguf is put into the page as it is")));
  EXPECT_EQ(rounded_bytes(gguf, LiveNumbers::kFloat16), std::nullopt);
}

// Other numbers, such as positions, stay as they are.
TEST(LiveWeights, KeepIntegers) {
  const std::string eight("\1\0\0\0\0\0\0\0", 8);
  for (const LiveNumbers numbers : {LiveNumbers::kFloat16, LiveNumbers::kFile}) {
    const LiveFiles rounded = rounded_files(files_with(DType::kI64, {1, 1}, eight), numbers);
    const SafetensorsFile file = SafetensorsFile::from_bytes(rounded.at("model.safetensors"), "page");
    EXPECT_EQ(file.entry("w").dtype, DType::kI64);
    EXPECT_EQ(file.bytes("w"), eight);
  }
}

}  // namespace
}  // namespace mh

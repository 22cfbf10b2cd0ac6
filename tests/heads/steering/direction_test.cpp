// Directions: their files, and what they are not added to.
#include "multihead/heads/steering/heads_steer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

SteerDirection some_direction(const std::string& site, int64_t columns) {
  SteerDirection direction{
      .site = site, .numbers = Tensor(1, columns), .weights = std::string(64, 'a'), .made = "by hand"};
  for (int64_t c = 0; c < columns; ++c) direction.numbers(0, c) = 0.1f + 1.0f / static_cast<float>(c - 3);
  direction.numbers(0, 3) = -0.0f;
  return direction;
}

TEST(SteerDirections, AreTheSameBitsInTheirFile) {
  const test::ScratchFolder scratch;
  for (const bool of_head : {false, true}) {
    SteerDirection direction = some_direction("decoder.1.self_attention.heads", 7);
    if (of_head) direction.head = 3, direction.row_length = 0.1;
    write_file_atomically(scratch / "a.safetensors", direction_file(direction));
    const SteerDirection read = read_direction(scratch / "a.safetensors");
    EXPECT_EQ(direction_file(read), direction_file(direction));
    EXPECT_EQ(read.site, direction.site);
    EXPECT_EQ(read.head, direction.head);
    EXPECT_EQ(read.weights, direction.weights);
    EXPECT_EQ(read.made, direction.made);
    EXPECT_EQ(read.row_length, direction.row_length);
    EXPECT_EQ(read.name, (scratch / "a.safetensors").string());
    EXPECT_TRUE(std::signbit(read.numbers(0, 3)));
    EXPECT_EQ(read.length(), direction.length());
  }
}

TEST(SteerDirections, HaveALength) {
  SteerDirection direction{.numbers = Tensor(1, 3)};
  direction.numbers(0, 0) = 3e20f,
                       direction.numbers(0, 2) = -4e20f;  // whose squares are too large for float32
  EXPECT_NEAR(direction.length(), 5e20, 1e14);
}

TEST(SteerDirections, ThatAreNoneAreRefusedInOneLine) {
  const test::ScratchFolder scratch;
  const SteerDirection direction = some_direction("decoder.1.output", 7);
  const std::string whole = direction_file(direction);
  const auto refused = [&](const std::string& bytes, const std::string& words) {
    write_file_atomically(scratch / "bad", bytes);
    EXPECT_THAT([&] { read_direction(scratch / "bad"); },
                ThrowsMessage<FormatError>(AllOf(HasSubstr((scratch / "bad").string()), HasSubstr(words),
                                                 testing::Not(HasSubstr("\n")))));
  };
  for (size_t size = 0; size < whole.size(); size += 13) refused(whole.substr(0, size), "");
  SteerDirection infinite = direction;
  infinite.numbers(0, 5) = HUGE_VALF;
  refused(direction_file(infinite), "'direction' has a number that is not finite");
  const std::vector<float> numbers(6, 1.0f);
  const auto with = [&](const char* name, std::vector<int64_t> shape,
                        std::map<std::string, std::string> metadata) {
    const NamedTensor tensor{.name = name, .shape = std::move(shape), .data = std::span(numbers)};
    return write_safetensors({&tensor, 1}, metadata);
  };
  const std::map<std::string, std::string> usual{{"format", "multihead direction"},
                                                 {"site", "decoder.1.output"}};
  refused(with("direction", {6}, {}), "is no direction; `multihead heads steer ... --save FILE` makes one");
  refused(with("direction", {6}, {{"format", "multihead direction"}}), "is no direction");
  refused(with("vector", {6}, usual), "is no direction");
  refused(with("direction", {2, 3}, usual), "'direction' has 2 dimensions; expected one");
  for (const char* head : {"-1", "1.5", "x", "99999999999999"}) {
    auto metadata = usual;
    metadata["head"] = head;
    refused(with("direction", {6}, metadata), std::string("`head` of its metadata is '") + head);
  }
  for (const char* length : {"nan", "-2", "inf", "1e999"}) {
    auto metadata = usual;
    metadata["row_length"] = length;
    refused(with("direction", {6}, metadata), "`row_length` of its metadata is");
  }
  EXPECT_THROW(read_direction(scratch / "missing"), FileError);
}

TEST(SteerDirections, OfAnotherModelAreRefusedWithTheRemedy) {
  const EncoderDecoder model(small_shape().config());
  const std::string own(64, 'a'), other(64, 'b');
  const auto refused = [&](const SteerDirection& direction, const std::string& weights, const char* words) {
    EXPECT_THAT(
        [&] { check_direction(direction, model, weights); },
        ThrowsMessage<UsageError>(AllOf(testing::StartsWith("the direction "), HasSubstr(words),
                                        HasSubstr("make one with this model: multihead heads steer"))));
  };
  check_direction(some_direction("decoder.1.output", 20), model, own);
  check_direction(some_direction("decoder.1.output", 20), model, {});
  SteerDirection unknown = some_direction("decoder.1.output", 20),
                 head = some_direction("encoder.0.self_attention.heads", 10);
  unknown.weights.clear();
  check_direction(unknown, model, other);
  head.head = 1;
  check_direction(head, model, own);
  head.head = 2;
  refused(head, own, "is for head 2 of 'encoder.0.self_attention.heads', which has 2");
  refused(some_direction("decoder.1.output", 20), other,
          "was made with other weights (SHA-256 aaaaaaaaaaaa..., this model's bbbbbbbbbbbb...)");
  refused(some_direction("decoder.1.output", 19), own,
          "has 19 numbers, and 'decoder.1.output' of this model 20");
  refused(some_direction("decoder.7.output", 20), own,
          "is for the site 'decoder.7.output', which this model does not have");
  refused(some_direction("decoder.*.output", 20), own, "is for the site 'decoder.*.output'");
}

}  // namespace
}  // namespace mh

// What a program may pass by mistake to the writers of files: an exception, never an abort.
#include <gmock/gmock.h>

#include "multihead/base/error.h"
#include "multihead/io/config.h"
#include "multihead/io/npy.h"
#include "multihead/io/safetensors.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Shape = std::vector<int64_t>;

TEST(Refusals, ShapesThatAreNotThoseOfTheNumbers) {
  const std::vector<float> six(6);
  EXPECT_THAT(
      [&] {
        write_npy(Shape{2, 4}, six);
      },
      ThrowsMessage<ShapeError>(HasSubstr("an array of shape (2, 4) has 6 numbers")));
  EXPECT_THROW(write_npy(Shape{-2, -3}, six), ShapeError);
  EXPECT_THROW(write_npy(Shape(40'000, 1), std::vector<float>(1)), ShapeError);
  const auto write = [&](const char* name, const Shape& shape) {
    const NamedTensor tensor{.name = name, .shape = shape, .data = std::span<const float>(six)};
    return write_safetensors({&tensor, 1});
  };
  EXPECT_THAT(
      [&] {
        write("x", {2, 4});
      },
      ThrowsMessage<ShapeError>(HasSubstr("\"x\" of shape [2,4] has 6 numbers")));
  EXPECT_THROW(write("x", {-2, -3}), ShapeError);
  EXPECT_THROW(write("x", {int64_t{1} << 62, int64_t{1} << 62, 6}), ShapeError);
  EXPECT_THROW(write("__metadata__", {6}), UsageError);
  const NamedTensor tensor{.name = "x", .shape = {6}, .data = std::span<const float>(six)};
  const std::vector<NamedTensor> twice{tensor, tensor};
  EXPECT_THAT([&] { write_safetensors(twice); },
              ThrowsMessage<UsageError>(HasSubstr("\"x\" is there twice")));

  const SafetensorsFile file = SafetensorsFile::from_bytes(write("x", {2, 3}), "file");
  std::vector<float> five(5);
  EXPECT_THAT([&] { file.read_floats("x", five); },
              ThrowsMessage<ShapeError>(HasSubstr("has 6 numbers, not 5")));
}

enum class Colour { kRed, kGreen };
struct Painted {
  Colour colour = Colour::kRed;
  template <class V>
  void visit(V& v) {
    v("colour", colour, {{"red", Colour::kRed}});
  }
};

TEST(Refusals, ValuesThatHaveNoName) {
  EXPECT_THAT([] { return to_json(Painted{Colour::kGreen}); },
              ThrowsMessage<FormatError>(HasSubstr("none of \"red\"")));
}

}  // namespace
}  // namespace mh

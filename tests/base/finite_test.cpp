// Numbers that are not finite are found wherever they stand.
#include "multihead/base/finite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "multihead/base/error.h"

namespace mh {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Finite, EveryPlaceCounts) {
  std::vector<float> numbers(37, std::numeric_limits<float>::max());
  numbers[3] = std::numeric_limits<float>::lowest(), numbers[7] = std::numeric_limits<float>::denorm_min();
  EXPECT_TRUE(all_finite(numbers));
  EXPECT_TRUE(all_finite(std::span<const float>()));
  for (const float bad : {kInfinity, -kInfinity, std::nanf(""), -std::nanf("")}) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      std::vector<float> damaged = numbers;
      damaged[i] = bad;
      EXPECT_FALSE(all_finite(damaged)) << bad << " at " << i;
      EXPECT_FALSE(all_finite(ConstMatrixView(damaged.data(), 1, 37)));
    }
  }
}

// What lies between the rows is not part of the matrix.
TEST(Finite, OnlyTheColumnsOfAViewCount) {
  constexpr int64_t kRows = 5, kStride = 7;
  std::vector<float> numbers(kRows * kStride, 1);
  const ConstMatrixView view = ConstMatrixView(numbers.data(), kRows, kStride).columns_between(2, 5);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kStride; ++j) {
      float& number = numbers[static_cast<size_t>(i * kStride + j)];
      number = kInfinity;
      EXPECT_EQ(all_finite(view), j < 2 || j >= 5) << i << " " << j;
      number = 1;
    }
  }
  EXPECT_TRUE(all_finite(ConstMatrixView()));
}

TEST(Finite, TheErrorSaysWhatAndWhy) {
  const std::vector<float> good{1, 2}, bad{1, kInfinity};
  EXPECT_NO_THROW(require_finite(good, "states"));
  EXPECT_THAT(
      [&] { require_finite(bad, "states"); },
      testing::ThrowsMessage<Error>("the model's states are not finite numbers; its weights may be damaged"));
  EXPECT_THROW(require_finite(ConstMatrixView(bad.data(), 2, 1), "states"), Error);
}

}  // namespace
}  // namespace mh

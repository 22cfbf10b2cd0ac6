// float16: exact for all of its numbers, and to the nearest for those between.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "multihead/base/stored_matrix.h"

namespace mh {
namespace {

TEST(Float16, GivesEveryFiniteNumberBack) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    if ((half & 0x7C00u) == 0x7C00u) continue;  // infinity and NaN
    ASSERT_EQ(to_float16(from_float16(static_cast<uint16_t>(half))), half);
  }
}

TEST(Float16, TakesTheNearestAndOfTwoTheEvenOne) {
  for (uint32_t half = 0; half + 1 < 0x7C00u; ++half) {
    const float low = from_float16(static_cast<uint16_t>(half)),
                high = from_float16(static_cast<uint16_t>(half + 1)), middle = 0.5f * (low + high);
    ASSERT_EQ(to_float16(middle), half % 2 == 0 ? half : half + 1);
    ASSERT_EQ(to_float16(std::nextafter(middle, low)), half);
    ASSERT_EQ(to_float16(std::nextafter(middle, high)), half + 1);
    ASSERT_EQ(to_float16(-middle), (half % 2 == 0 ? half : half + 1) | 0x8000u);
  }
  EXPECT_EQ(to_float16(65519), 0x7BFF);
  EXPECT_EQ(to_float16(65520), 0x7C00);
  EXPECT_EQ(to_float16(-std::numeric_limits<float>::max()), 0xFC00);
}

}  // namespace
}  // namespace mh

// The soft cap of single numbers against tanh in double, on every instruction set.
#include "multihead/kernels/soft_cap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "on_target.h"

namespace mh {
namespace {

class SoftCapOnTarget : public testing::TestWithParam<std::string> {
  const OnTarget target_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Targets, SoftCapOnTarget, testing::ValuesIn(dispatch_targets()),
                         [](const auto& target) { return target.param; });

std::vector<float> capped(float cap, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  const auto size = static_cast<int64_t>(x.size());
  soft_cap(cap, {x.data(), 1, size}, {y.data(), 1, size});
  return y;
}

/// Numbers of both signs from the smallest to far beyond the cap, close to one another.
std::vector<float> numbers() {
  std::vector<float> x{0};
  for (double size = 1e-30; size < 1e30; size *= size < 1e-3 || size > 100 ? 1.7 : 1.0007) {
    x.push_back(static_cast<float>(size));
    x.push_back(static_cast<float>(-size));
  }
  return x;
}

TEST_P(SoftCapOnTarget, IsTanhToSevenDigits) {
  const std::vector<float> x = numbers();
  for (const float cap : {1.0f, 30.0f, 50.0f, 0.37f, 1e6f}) {
    const std::vector<float> y = capped(cap, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = double{cap} * std::tanh(double{x[i]} / double{cap});
      ASSERT_NEAR(y[i], expected, 2.5e-7 * std::abs(expected)) << "cap " << cap << " of " << x[i];
      ASSERT_LE(std::abs(y[i]), cap);
    }
  }
}

TEST_P(SoftCapOnTarget, KeepsZeroInfinityAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const size_t size : {1, 5, 16, 37}) {  // in vectors and alone
    std::vector<float> x(size, 0);
    EXPECT_EQ(capped(50, x), x);
    x.back() = infinity;
    EXPECT_EQ(capped(50, x).back(), 50);
    x.back() = -infinity;
    EXPECT_EQ(capped(50, x).back(), -50);
    x.back() = std::nanf("");
    EXPECT_TRUE(std::isnan(capped(50, x).back()));
  }
}

TEST_P(SoftCapOnTarget, GradientIsTheSlope) {
  const std::vector<float> x = numbers(), y = capped(3, x);
  std::vector<float> dx(x.size(), 2);
  const auto size = static_cast<int64_t>(x.size());
  soft_cap_gradient(3, {y.data(), 1, size}, {dx.data(), 1, size}, {dx.data(), 1, size});
  for (size_t i = 0; i < x.size(); ++i) {
    const double share = std::tanh(double{x[i]} / 3);
    ASSERT_NEAR(dx[i], 2 * (1 - share * share), 1e-6) << x[i];
  }
}

TEST(SoftCap, IsPositiveAndFinite) {
  for (const float good : {50.0f, 1e-3f, 1e6f}) EXPECT_TRUE(is_soft_cap(good));
  for (const float bad : {0.0f, -1.0f, std::nanf(""), std::numeric_limits<float>::infinity()})
    EXPECT_FALSE(is_soft_cap(bad));
}

}  // namespace
}  // namespace mh

// Activations and their gradients against the formulas in double, on every instruction set of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "multihead/kernels/elementwise.h"
#include "multihead/tensor/tensor.h"
#include "tests/kernels/on_target.h"

namespace mh {
namespace {

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double tanh_share(double x) {
  return sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}

struct Formula {
  Activation activation;
  std::function<double(double)> value, slope;
};

const std::vector<Formula> kFormulas = {
    {Activation::kNone, [](double x) { return x; }, [](double) { return 1.0; }},
    {Activation::kRelu, [](double x) { return std::max(0.0, x); },
     [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {Activation::kGelu, [](double x) { return x * normal_cdf(x); },
     [](double x) {
       return normal_cdf(x) + x * std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
     }},
    {Activation::kGeluTanh, [](double x) { return x * tanh_share(x); },
     [](double x) {
       const double s = tanh_share(x);
       return s + x * s * (1 - s) * 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
     }},
    {Activation::kSwish, [](double x) { return x * sigmoid(x); },
     [](double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }}};

class Activations : public testing::TestWithParam<std::string> {};

// Rows of 1,009 numbers, so that most vectors are whole and the last is not.
TEST_P(Activations, FollowTheirFormulas) {
  const OnTarget target(GetParam());
  constexpr int64_t kRows = 41, kCols = 1009;
  Tensor z(kRows, kCols), y(kRows, kCols), dy(kRows, kCols), dz(kRows, kCols);
  for (int64_t i = 0; i < z.size(); ++i) {
    z.data()[i] =
        static_cast<float>(40.0 * (2.0 * static_cast<double>(i) / static_cast<double>(z.size() - 1) - 1));
    dy.data()[i] = static_cast<float>(i % 7) - 3;
  }
  for (const Formula& formula : kFormulas) {
    activate(formula.activation, z.view(), y.view());
    activation_gradient(formula.activation, z.view(), dy.view(), dz.view());
    for (int64_t i = 0; i < z.size(); ++i) {
      const double x = z.data()[i], factor = dy.data()[i], value = formula.value(x), slope = formula.slope(x);
      ASSERT_NEAR(y.data()[i], value, 1e-7 + 5e-7 * std::fabs(value)) << "of " << x;
      ASSERT_NEAR(dz.data()[i], factor * slope, 3 * (1.5e-6 + 5e-7 * std::fabs(slope))) << "at " << x;
    }
  }
}

// The left tail of x Phi(x) is small, not lost: a sum of 1 and erf(x) would give 0 from -5.5 on.
TEST_P(Activations, GeluKeepsItsTail) {
  const OnTarget target(GetParam());
  for (const float x : {-1.0f, -3.0f, -5.5f, -8.0f, -12.0f}) {
    Tensor z(1, 1), y(1, 1);
    z.data()[0] = x;
    activate(Activation::kGelu, z.view(), y.view());
    EXPECT_NEAR(y.data()[0] / (x * normal_cdf(x)), 1, 1e-5) << x;
  }
}

TEST_P(Activations, KeepWhatIsNoNumber) {
  const OnTarget target(GetParam());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Formula& formula : kFormulas) {
    Tensor z(1, 19), y(1, 19);
    for (int64_t i = 0; i < z.size(); ++i) z.data()[i] = i % 2 == 0 ? std::nanf("") : kInfinity;
    activate(formula.activation, z.view(), y.view());
    for (int64_t i = 0; i < z.size(); ++i) {
      if (i % 2 == 0) {
        EXPECT_TRUE(std::isnan(y.data()[i])) << i;
      } else {
        EXPECT_EQ(y.data()[i], kInfinity) << i;
      }
    }
  }
}

TEST_P(Activations, MayWriteOverTheirInput) {
  const OnTarget target(GetParam());
  for (const Formula& formula : kFormulas) {
    Tensor z(3, 37), y(3, 37);
    for (int64_t i = 0; i < z.size(); ++i) z.data()[i] = static_cast<float>(i) / 17 - 3;
    activate(formula.activation, z.view(), y.view());
    activate(formula.activation, z.view(), z.view());
    for (int64_t i = 0; i < z.size(); ++i) EXPECT_EQ(z.data()[i], y.data()[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Activations, testing::ValuesIn(dispatch_targets()));

}  // namespace
}  // namespace mh

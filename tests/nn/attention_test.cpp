// The formula of attention: its gradients in double, and that the fused kernel computes the same.
#include "multihead/nn/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "multihead/autograd/attention.h"
#include "multihead/autograd/gradcheck.h"
#include "multihead/autograd/ops.h"
#include "multihead/base/random.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh {
namespace {

using namespace ops;

using D = BasicTensor<double>;
constexpr int64_t kQueries = 5, kKeys = 7, kKey = 3, kValue = 11;
constexpr double kScale = 0.37;

D random_matrix(int64_t rows, int64_t cols, uint64_t seed) {
  D m(rows, cols);
  Random random(seed);
  for (int64_t i = 0; i < m.size(); ++i) m.data()[i] = random.normal();
  return m;
}
std::vector<D> inputs() {
  return {random_matrix(kQueries, kKey, 1), random_matrix(kKeys, kKey, 2), random_matrix(kKeys, kValue, 3),
          random_matrix(kQueries, kKeys, 4)};
}

TEST(Formula, HasGradientsOfOutputAndWeights) {
  D output_seed = random_matrix(kQueries, kValue, 5), weights_seed = random_matrix(kQueries, kKeys, 6);
  for (const auto& [mask, soft_cap] : {std::pair<Mask, std::optional<double>>{Mask::none(), std::nullopt},
                                       {Mask::causal(), std::nullopt},
                                       {Mask::causal(), 0.4}}) {
    const double error = gradcheck(
        [&, mask = mask, soft_cap = soft_cap](BasicTape<double>& tape, std::span<const BasicVar<double>> x) {
          const auto result =
              attention_formula<double>(tape, x[0], x[1], x[2], kScale, mask, std::optional(x[3]), soft_cap);
          return add(tape, sum(tape, multiply(tape, result.output, tape.constant(output_seed.view()))),
                     sum(tape, multiply(tape, result.weights, tape.constant(weights_seed.view()))));
        },
        inputs());
    EXPECT_LT(error, 1e-8);
  }
}

TEST(Formula, IsWhatTheKernelComputes) {
  std::vector<D> x = inputs();
  for (const Mask& mask : {Mask::none(), Mask::causal(), Mask::window(2, 1)}) {
    for (const int kind : {0, 1, 2, 3}) {
      const bool biased = kind % 2 == 1;
      const std::optional<double> soft_cap = kind < 2 ? std::nullopt : std::optional(0.4);
      BasicTape<double> exact;
      const auto in = [&](size_t i) { return exact.constant(x[i].view()); };
      const auto expected = attention_formula<double>(exact, in(0), in(1), in(2), kScale, mask,
                                                      biased ? std::optional(in(3)) : std::nullopt, soft_cap);

      const Tensor q = in_float(x[0].view()), k = in_float(x[1].view()), v = in_float(x[2].view()),
                   bias = in_float(x[3].view());
      const std::vector<int32_t> query_offsets = {0, kQueries}, key_offsets = {0, kKeys};
      Tensor output(kQueries, kValue), weights(kQueries, kKeys);
      AttentionInputs fused;
      fused.q = q.view(), fused.k = k.view(), fused.v = v.view();
      fused.d_key = kKey, fused.d_value = kValue;
      fused.query_offsets = query_offsets, fused.key_offsets = key_offsets;
      fused.scale = static_cast<float>(kScale);
      fused.mask = mask;
      if (soft_cap) fused.soft_cap = static_cast<float>(*soft_cap);
      if (biased) fused.bias.elements = {bias.data(), static_cast<size_t>(bias.size())};
      attention_forward(fused, {.output = output.view(), .weights = weights.data()});
      for (int64_t i = 0; i < kQueries; ++i) {
        for (int64_t j = 0; j < kValue; ++j) EXPECT_NEAR(output(i, j), expected.output.value()(i, j), 1e-5);
        for (int64_t j = 0; j < kKeys; ++j) EXPECT_NEAR(weights(i, j), expected.weights.value()(i, j), 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace mh

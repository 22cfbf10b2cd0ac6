// The similarity of heads equals the sum over pairs, computed in double, and its gradients equal central
// differences.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "multihead/autograd/disagreement.h"
#include "multihead/autograd/ops.h"
#include "multihead/base/random.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

using D = BasicTensor<double>;

/// `op` on numbers x against `formula`, times `factor`, with something in the gradient already.
void check(Tensor x, const std::function<Var(Tape&, Var)>& op,
           const std::function<double(const D&)>& formula) {
  constexpr float kFactor = 3;
  D wide(x.rows(), x.cols());
  for (int64_t i = 0; i < x.size(); ++i) wide.data()[i] = x.data()[i];
  Tape tape(Tape::Mode::kRecord);
  const Var input = tape.constant(x.view(), Tape::Gradient::kWants);
  const Var first = op(tape, input), second = op(tape, input);
  EXPECT_NEAR(first.value()(0, 0), formula(wide), 1e-4 * formula(wide));
  const float half = kFactor / 2;
  tape.seed(first, {&half, 1, 1});
  tape.seed(second, {&half, 1, 1});
  tape.backward();
  for (int64_t i = 0; i < wide.size(); ++i) {
    const double kept = wide.data()[i];
    wide.data()[i] = kept + 1e-6;
    const double above = formula(wide);
    wide.data()[i] = kept - 1e-6;
    const double below = formula(wide);
    wide.data()[i] = kept;
    ASSERT_NEAR(input.gradient()(i / x.cols(), i % x.cols()), kFactor * (above - below) / 2e-6, 1e-3) << i;
  }
}

TEST(AlikeRows, IsTheSumOfCosinesOfAllPairs) {
  constexpr int kHeads = 3;
  constexpr int64_t kSize = 5;
  Random random(3);
  Tensor x(7, kHeads * kSize);
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(random.normal());
  check(
      std::move(x), [](Tape& tape, Var v) { return row_similarity(tape, v, kHeads); },
      [](const D& at) {
        const auto dot = [&](int64_t row, int i, int j) {
          double sum = 0;
          for (int64_t c = 0; c < kSize; ++c) sum += at(row, i * kSize + c) * at(row, j * kSize + c);
          return sum;
        };
        double sum = 0;
        for (int64_t row = 0; row < at.rows(); ++row) {
          for (int i = 0; i < kHeads; ++i) {
            for (int j = 0; j < kHeads; ++j)
              sum += dot(row, i, j) / std::sqrt(dot(row, i, i) * dot(row, j, j));
          }
        }
        return sum / (kHeads * kHeads);
      });
}

TEST(AlikeRows, AreTheSameWhereverHeadsLie) {
  constexpr int kHeads = 3;
  constexpr int64_t kSize = 5;
  Random random(4);
  Tensor x(67, kHeads * kSize);  // more rows than a task has
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(random.normal());
  const auto with = [&](bool apart) {
    Tape tape(Tape::Mode::kRecord);
    const Var input = tape.constant(x.view(), Tape::Gradient::kWants);
    std::vector<Var> heads;
    for (int64_t h = 0; h < kHeads; ++h)
      heads.push_back(ops::block(tape, input, 0, x.rows(), h * kSize, (h + 1) * kSize));
    const Var sum = apart ? row_similarity(tape, heads) : row_similarity(tape, input, kHeads);
    const float one = 1;
    tape.seed(sum, {&one, 1, 1});
    tape.backward();
    std::vector<float> found = {sum.value()(0, 0)};
    for (int64_t i = 0; i < x.size(); ++i) found.push_back(input.gradient()(i / x.cols(), i % x.cols()));
    return found;
  };
  EXPECT_EQ(with(true), with(false));
}

TEST(AlikeRows, EqualHeadsAreAsAlikeAsCanBeAndZerosAreLikeNothing) {
  Tensor equal(2, 6), zero(2, 6);
  for (int64_t i = 0; i < 12; ++i) equal.data()[i] = static_cast<float>(1 + i % 2);
  Tape tape;
  EXPECT_NEAR(row_similarity(tape, tape.constant(equal.view()), 3).value()(0, 0), 2, 1e-5);  // 1 a row
  EXPECT_EQ(row_similarity(tape, tape.constant(zero.view()), 3).value()(0, 0), 0);
}

TEST(AlikeMaps, IsTheSumOfProductsOfAllPairs) {
  constexpr int64_t kKeys = 5;
  Random random(3);
  Tensor maps(7, 3 * kKeys);  // of three heads side by side
  for (int64_t i = 0; i < maps.size(); ++i) maps.data()[i] = static_cast<float>(random.normal());
  check(
      std::move(maps),
      [&](Tape& tape, Var v) {
        std::vector<Var> heads;
        for (int64_t h = 0; h < 3; ++h)
          heads.push_back(ops::block(tape, v, 0, v.rows(), h * kKeys, (h + 1) * kKeys));
        return map_similarity(tape, heads);
      },
      [](const D& at) {
        double sum = 0;
        for (int64_t r = 0; r < at.rows(); ++r) {
          for (int64_t i = 0; i < 3; ++i) {
            for (int64_t j = 0; j < 3; ++j) {
              for (int64_t n = 0; n < kKeys; ++n)
                sum += std::abs(at(r, i * kKeys + n) * at(r, j * kKeys + n));
            }
          }
        }
        return sum / 9;
      });
}

}  // namespace
}  // namespace mh

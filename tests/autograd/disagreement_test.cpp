// The similarity of heads equals the sum over pairs, computed in double, and its gradients equal central
// differences.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "multihead/autograd/disagreement.h"
#include "multihead/base/ragged.h"
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

TEST(AlikeRows, EqualHeadsAreAsAlikeAsCanBeAndZerosAreLikeNothing) {
  Tensor equal(2, 6), zero(2, 6);
  for (int64_t i = 0; i < 12; ++i) equal.data()[i] = static_cast<float>(1 + i % 2);
  Tape tape;
  EXPECT_NEAR(row_similarity(tape, tape.constant(equal.view()), 3).value()(0, 0), 2, 1e-5);  // 1 a row
  EXPECT_EQ(row_similarity(tape, tape.constant(zero.view()), 3).value()(0, 0), 0);
}

TEST(AlikeMaps, IsTheSumOfProductsOfAllPairs) {
  const Ragged queries = Ragged::from_lengths(std::vector<int32_t>{2, 1});
  const Ragged keys = Ragged::from_lengths(std::vector<int32_t>{3, 5});
  AttentionInputs inputs;
  inputs.heads = 3;
  inputs.query_offsets = queries.offsets();
  inputs.key_offsets = keys.offsets();
  Random random(3);
  Tensor maps(1, attention_weights_size(inputs));
  ASSERT_EQ(maps.size(), 3 * (2 * 3 + 1 * 5));
  for (int64_t i = 0; i < maps.size(); ++i) maps.data()[i] = static_cast<float>(random.normal());
  check(
      std::move(maps), [&](Tape& tape, Var v) { return map_similarity(tape, v, inputs); },
      [](const D& at) {
        double sum = 0;
        int64_t first = 0;
        for (const int64_t size : {6, 5}) {
          for (int64_t i = 0; i < 3; ++i) {
            for (int64_t j = 0; j < 3; ++j) {
              for (int64_t n = 0; n < size; ++n)
                sum += std::abs(at(0, first + i * size + n) * at(0, first + j * size + n));
            }
          }
          first += 3 * size;
        }
        return sum / 9;
      });
}

}  // namespace
}  // namespace mh

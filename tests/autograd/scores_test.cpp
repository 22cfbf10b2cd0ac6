// Scores and their gradients: in double against central differences, logits against the formula.
#include "multihead/autograd/scores.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "multihead/autograd/gradcheck.h"
#include "multihead/autograd/ops.h"
#include "multihead/autograd/vocabulary.h"
#include "multihead/base/error.h"
#include "tests/autograd/random_numbers.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

using test::random_matrix;

using D = BasicTensor<double>;
using V = BasicVar<double>;
using DoubleTape = BasicTape<double>;

V weighted_by_cosines(DoubleTape& tape, V y) {
  const auto weights = tape.arena().matrix<double>(y.rows(), y.cols());
  for (int64_t i = 0; i < weights.size(); ++i) weights.data[i] = std::cos(static_cast<double>(3 * i + 1));
  return ops::sum(tape, ops::multiply(tape, y, tape.constant(weights)));
}

TEST(Scores, LogSoftmaxAndWhatIsPickedFromIt) {
  const std::vector<int32_t> rows{2, 0, 2, 2}, columns{4, 1, 4, 0};  // a place twice
  EXPECT_LT(gradcheck(
                [&](DoubleTape& t, std::span<const V> x) {
                  const V all = ops::log_softmax(t, x[0]);
                  return ops::add(t, weighted_by_cosines(t, ops::pick(t, all, rows, columns)),
                                  weighted_by_cosines(t, all));
                },
                {random_matrix(3, 5, 1)}),
            1e-8);
  DoubleTape tape;
  D large(1, 3);
  large(0, 0) = 1000;
  large(0, 1) = 999;
  const V found = ops::log_softmax(tape, tape.constant(large.view()));
  EXPECT_NEAR(found.value()(0, 0), -std::log(1 + std::exp(-1.0)), 1e-12);
}

// Of as many words as vocabularies have, one of them likely: a sum in float loses a part of each of the others.
TEST(Scores, LogSoftmaxOfManyWordsIsExactInFloat) {
  constexpr int64_t kWords = 60'013;
  Tensor x(1, kWords);
  double sum = 0;
  for (int64_t j = 0; j < kWords; ++j) {
    x(0, j) = j == 0 ? 0.0f : static_cast<float>(std::sin(static_cast<double>(j)) - 12);
    sum += std::exp(static_cast<double>(x(0, j)));
  }
  Tape tape;
  const Var found = ops::log_softmax(tape, tape.constant(x.view()));
  for (const int64_t j : {int64_t{0}, int64_t{4'999}, kWords - 1})
    EXPECT_NEAR(static_cast<double>(found.value()(0, j)), static_cast<double>(x(0, j)) - std::log(sum), 2e-6);
}

TEST(Scores, CosinesOfRows) {
  const auto f = [](DoubleTape& t, std::span<const V> x) {
    return weighted_by_cosines(t, ops::cosines(t, x[0], x[1]));
  };
  EXPECT_LT(gradcheck(f, {random_matrix(3, 5, 1), random_matrix(3, 5, 2)}), 1e-8);
  const auto with_itself = [](DoubleTape& t, std::span<const V> x) {
    return weighted_by_cosines(t, ops::cosines(t, x[0], ops::multiply(t, x[0], x[0])));
  };
  EXPECT_LT(gradcheck(with_itself, {random_matrix(3, 5, 1)}), 1e-8);

  D none(1, 3), some = random_matrix(1, 3, 4);
  DoubleTape tape(DoubleTape::Mode::kRecordValues);
  const auto a = tape.watch(tape.constant(none.view())), b = tape.watch(tape.constant(some.view()));
  const V cosine = ops::cosines(tape, a.value, b.value);
  tape.backward(cosine);
  EXPECT_EQ(cosine.value()(0, 0), 0);
  for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(a.gradient(0, j) + b.gradient(0, j), 0);
}

void expect_logits_and_gradients(std::optional<float> soft_cap) {
  Parameter table(7, 5);
  table.value.tensor() = random_matrix<float>(7, 5, 1);
  const PackedParameters packed({&table}, RightFactor::kTransposed);
  Tensor states = random_matrix<float>(3, 5, 2), bias = random_matrix<float>(1, 7, 3),
         seed = random_matrix<float>(3, 7, 4), d_logits(3, 7);
  for (const Tape::Mode mode : {Tape::Mode::kRecordValues, Tape::Mode::kRecord}) {
    Tape tape(mode);
    const Tape::Watched in = tape.watch(tape.constant(states.view()));
    const Var y = logits(tape, in.value, {packed, bias.view(), soft_cap});
    tape.seed(y, std::as_const(seed).view());
    tape.backward();
    EXPECT_EQ(table.gradient.exists(), mode == Tape::Mode::kRecord);
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t v = 0; v < 7; ++v) {
        double sum = bias(0, v);
        for (int64_t c = 0; c < 5; ++c) sum += static_cast<double>(states(i, c)) * table.value(v, c);
        if (soft_cap) sum = double{*soft_cap} * std::tanh(sum / double{*soft_cap});
        EXPECT_NEAR(y.value()(i, v), sum, 1e-5);
        const double share = soft_cap ? sum / double{*soft_cap} : 0;
        d_logits(i, v) = static_cast<float>(seed(i, v) * (1 - share * share));
      }
      for (int64_t c = 0; c < 5; ++c) {
        double sum = 0;
        for (int64_t v = 0; v < 7; ++v) sum += static_cast<double>(d_logits(i, v)) * table.value(v, c);
        EXPECT_NEAR(in.gradient(i, c), sum, 1e-5);
      }
    }
  }
  for (int64_t v = 0; v < 7; ++v) {
    double sum = 0;
    for (int64_t i = 0; i < 3; ++i) sum += static_cast<double>(d_logits(i, v)) * states(i, 2);
    EXPECT_NEAR(table.gradient.view()(v, 2), sum, 1e-5);
  }
}

TEST(Scores, LogitsAndTheirGradients) {
  expect_logits_and_gradients(std::nullopt);
  expect_logits_and_gradients(1.5f);
}

TEST(Scores, SaysWhatDoesNotFit) {
  DoubleTape tape;
  D numbers(2, 3);
  const V x = tape.constant(numbers.view());
  const std::vector<int32_t> one{1}, two{0, 2};
  EXPECT_THAT([&] { ops::pick(tape, x, two, one); },
              ThrowsMessage<ShapeError>(HasSubstr("2 rows and 1 columns")));
  EXPECT_THAT([&] { ops::pick(tape, x, two, two); },
              ThrowsMessage<ShapeError>(HasSubstr("row 2, column 2 of a [2,3]")));
  EXPECT_THAT([&] { ops::cosines(tape, x, tape.constant(numbers.view().columns_between(0, 2))); },
              ThrowsMessage<ShapeError>(HasSubstr("[2,3] x [2,2]")));
}

}  // namespace
}  // namespace mh

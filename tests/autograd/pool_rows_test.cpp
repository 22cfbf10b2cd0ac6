// Rows of sequences pooled to one: their formulas, and their gradients as central differences.
#include "multihead/autograd/pool_rows.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <vector>

#include "multihead/autograd/ops.h"
#include "tests/autograd/random_numbers.h"

namespace mh {
namespace {

const std::vector<int32_t> kPooledOffsets{0, 3, 3, 4, 9};

/// d(seed . op(x)) / dx of the tape against central differences, with x used twice.
void expect_pooled_gradient(const std::function<Var(Tape&, Var)>& op) {
  Tensor x = test::random_matrix<float>(9, 5, 1);
  const auto score = [&](Tape& tape, Var in) {
    const Var y = op(tape, in);
    Tensor weights = test::random_matrix<float>(y.rows(), y.cols(), 2);
    const MatrixView kept = tape.arena().matrix<float>(y.rows(), y.cols());
    std::copy_n(weights.data(), weights.size(), kept.data);
    return ops::add(tape, ops::sum(tape, ops::multiply(tape, y, tape.constant(kept))),
                    ops::sum(tape, op(tape, in)));
  };
  Tape tape(Tape::Mode::kRecordValues);
  const Tape::Watched in = tape.watch(tape.constant(x.view()));
  tape.backward(score(tape, in.value));
  for (int64_t i = 0; i < x.size(); ++i) {
    constexpr float kStep = 1e-2f;
    const auto moved = [&](float by) {
      const float kept = x.data()[i];
      x.data()[i] = kept + by;
      Tape plain;
      const auto found = static_cast<double>(score(plain, plain.constant(x.view())).value()(0, 0));
      x.data()[i] = kept;
      return found;
    };
    EXPECT_NEAR(in.gradient.data[i], (moved(kStep) - moved(-kStep)) / (2 * static_cast<double>(kStep)), 2e-3)
        << i;
  }
}

TEST(PoolRows, HaveTheGradientsOfCentralDifferences) {
  const std::vector<double> weights{0.5, 0, -2, 1, 3, 0.25, 0, 1, 0.125};
  expect_pooled_gradient([&](Tape& tape, Var x) { return weigh_rows(tape, x, kPooledOffsets, weights); });
  expect_pooled_gradient([](Tape& tape, Var x) { return max_rows(tape, x, kPooledOffsets); });
  expect_pooled_gradient([](Tape& tape, Var x) { return unit_rows(tape, x); });
  expect_pooled_gradient([](Tape& tape, Var x) { return ops::tanh(tape, x); });
}

TEST(PoolRows, UnitRowsLeaveZerosAlone) {
  Tensor rows(2, 2);
  rows(0, 0) = 3, rows(0, 1) = -4;
  Tape tape;
  const MatrixView unit = unit_rows(tape, tape.constant(rows.view())).value();
  EXPECT_FLOAT_EQ(unit(0, 0), 0.6f);
  EXPECT_FLOAT_EQ(unit(0, 1), -0.8f);
  EXPECT_EQ(unit(1, 0), 0);
  EXPECT_EQ(unit(1, 1), 0);
}

TEST(PoolRows, OfWeightZeroAreNotRead) {
  Tensor x(2, 1);
  x(0, 0) = std::nanf(""), x(1, 0) = 5;
  const std::vector<int32_t> offsets{0, 2};
  const std::vector<double> weights{0, 1};
  Tape tape;
  EXPECT_EQ(weigh_rows(tape, tape.constant(x.view()), offsets, weights).value()(0, 0), 5);
}

}  // namespace
}  // namespace mh

// The gradients of the plain ops, and of the formula of attention, equal central differences in double.
#include "multihead/autograd/ops.h"

#include <gtest/gtest.h>

#include <array>

#include "multihead/autograd/gradcheck.h"
#include "tests/autograd/random_numbers.h"

namespace mh {
namespace {

using namespace ops;
using test::random_matrix;

using D = BasicTensor<double>;
using V = BasicVar<double>;
using DoubleTape = BasicTape<double>;

// A scalar in which every number of y has a weight of its own.
V weighted_sum(DoubleTape& tape, V y, const D& weights) {
  return sum(tape,
             multiply(tape, y,
                      tape.constant({const_cast<double*>(weights.data()), weights.rows(), weights.cols()})));
}

TEST(Ops, MatmulAndItsTransposedForm) {
  const D w = random_matrix(3, 5, 9);
  EXPECT_LT(gradcheck([&](DoubleTape& t,
                          std::span<const V> x) { return weighted_sum(t, matmul(t, x[0], x[1]), w); },
                      {random_matrix(3, 7, 1), random_matrix(7, 5, 2)}),
            1e-8);
  EXPECT_LT(
      gradcheck([&](DoubleTape& t,
                    std::span<const V> x) { return weighted_sum(t, matmul_transposed(t, x[0], x[1]), w); },
                {random_matrix(3, 7, 1), random_matrix(5, 7, 2)}),
      1e-8);
}

TEST(Ops, AddMultiplyScaleOnSharedInputs) {
  const D w = random_matrix(2, 3, 9);
  EXPECT_LT(gradcheck(
                [&](DoubleTape& t, std::span<const V> x) {
                  const V twice = add(t, x[0], multiply(t, x[0], x[1]));
                  return weighted_sum(t, add(t, scale(t, twice, -1.5), x[0]), w);
                },
                {random_matrix(2, 3, 1), random_matrix(2, 3, 2)}),
            1e-8);
}

TEST(Ops, StacksAndBlocks) {
  const D w = random_matrix(5, 3, 9), w2 = random_matrix(2, 7, 8);
  EXPECT_LT(gradcheck(
                [&](DoubleTape& t, std::span<const V> x) {
                  const std::array rows = {x[0], x[1]};
                  const V stacked = stack_rows<double>(t, rows);  // [5, 3]
                  const V part = block(t, stacked, 1, 3, 0, 3);   // [2, 3]
                  const std::array columns = {part, x[2]};        // [2, 3 + 4]
                  return add(t, weighted_sum(t, stacked, w),
                             weighted_sum(t, stack_columns<double>(t, columns), w2));
                },
                {random_matrix(2, 3, 1), random_matrix(3, 3, 2), random_matrix(2, 4, 3)}),
            1e-8);
}

TEST(Ops, SoftmaxUnderEveryMask) {
  const uint64_t bits[3] = {0b10110, 0, 0b00001};  // the second row may attend to nothing
  const D w = random_matrix(3, 5, 9);
  for (const Mask& mask :
       {Mask::none(), Mask::causal(), Mask::causal_top_left(), Mask::window(1, 0), Mask::dense({bits, 1})}) {
    EXPECT_LT(
        gradcheck([&](DoubleTape& t,
                      std::span<const V> x) { return weighted_sum(t, masked_softmax(t, x[0], mask), w); },
                  {random_matrix(3, 5, 1)}),
        1e-8);
  }
}

TEST(Ops, MaskedWeightsAreExactlyZero) {
  const uint64_t bits[2] = {0b101, 0};
  DoubleTape tape;
  D scores = random_matrix(2, 3, 1);
  scores(0, 1) = std::numeric_limits<double>::quiet_NaN();
  const V p = masked_softmax(tape, tape.constant(scores.view()), Mask::dense({bits, 1}));
  EXPECT_EQ(p.value()(0, 1), 0);
  EXPECT_NEAR(p.value()(0, 0) + p.value()(0, 2), 1, 1e-12);
  for (int j = 0; j < 3; ++j) EXPECT_EQ(p.value()(1, j), 0);
}

TEST(Ops, NamesShapesThatDoNotFit) {
  DoubleTape tape;
  D a(2, 3), b(4, 5);
  EXPECT_THROW(matmul(tape, tape.constant(a.view()), tape.constant(b.view())), ShapeError);
}

TEST(Tape, AssertsThatGradcheckCanFail) {
  // A function whose tape forgets half of its gradient: y = x * constant(x).
  const D x = random_matrix(2, 2, 1);
  const double error =
      gradcheck([&](DoubleTape& t,
                    std::span<const V> in) { return sum(t, multiply(t, in[0], t.constant(in[0].value()))); },
                {x});
  EXPECT_GT(error, 1e-2);
}

}  // namespace
}  // namespace mh

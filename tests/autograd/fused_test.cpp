// The fused ops equal formulas written out in double, and their gradients equal central differences of
// these.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/autograd/vocabulary.h"
#include "multihead/base/ragged.h"
#include "multihead/base/random.h"
#include "tests/autograd/random_numbers.h"

namespace mh {
namespace {

using test::randomise;

using D = BasicTensor<double>;

// One fused op: parameters in, [N, outputs] out; the same in double, for the same numbers.
struct Case {
  std::vector<Parameter*> inputs;  // the first ones are put on the tape as matrices
  std::function<Var(Tape&)> fused;
  std::function<D(const std::vector<D>&)> formula;
};

std::vector<D> in_double(const std::vector<Parameter*>& inputs) {
  std::vector<D> values;
  for (const Parameter* p : inputs) {
    D d(p->value.rows(), p->value.cols());
    for (int64_t i = 0; i < d.size(); ++i) d.data()[i] = p->value.data()[i];
    values.push_back(std::move(d));
  }
  return values;
}

void check(const Case& c, double tolerance) {
  Tape tape(Tape::Mode::kRecord);
  const Var y = c.fused(tape);
  const std::vector<D> values = in_double(c.inputs);
  const D expected = c.formula(values);
  ASSERT_EQ(y.rows(), expected.rows());
  ASSERT_EQ(y.cols(), expected.cols());
  Tensor seed(y.rows(), y.cols());
  Random random(99);
  for (int64_t i = 0; i < seed.size(); ++i) seed.data()[i] = static_cast<float>(random.normal());
  for (int64_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(y.value().data[i], expected.data()[i], tolerance) << "value " << i;
  }
  tape.seed(y, seed.view());
  tape.backward();
  const auto loss = [&](const std::vector<D>& at) {
    const D out = c.formula(at);
    double total = 0;
    for (int64_t i = 0; i < out.size(); ++i) total += out.data()[i] * seed.data()[i];
    return total;
  };
  for (size_t n = 0; n < values.size(); ++n) {
    for (int64_t i = 0; i < values[n].size(); ++i) {
      std::vector<D> above = values, below = values;
      above[n].data()[i] += 1e-5;
      below[n].data()[i] -= 1e-5;
      const double slope = (loss(above) - loss(below)) / 2e-5;
      ASSERT_NEAR(c.inputs[n]->gradient_sum().data[i], slope, tolerance * (1 + std::abs(slope)))
          << "input " << n << " at " << i;
    }
  }
}

// A parameter as a matrix on the tape, whose gradient lands in the parameter: through y = I x.
struct Rows {
  Parameter value;
  std::vector<int32_t> ids, positions;
  Tensor zero;
  Rows(int64_t n, int64_t cols, uint64_t seed)
      : value(n, cols), positions(static_cast<size_t>(n), 0), zero(1, cols) {
    randomise(value, seed);
    for (int32_t i = 0; i < n; ++i) ids.push_back(i);
  }
  Var on(Tape& tape) {
    return embed(tape, value, ids, {.positions = zero.view(), .positions_of = positions, .dropout = {}});
  }
};

double activated(Activation activation, double z) {
  switch (activation) {
    case Activation::kNone:
      return z;
    case Activation::kRelu:
      return z > 0 ? z : 0;
    case Activation::kGelu:
      return 0.5 * z * (1 + std::erf(z / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return 0.5 * z * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (z + 0.044715 * z * z * z)));
    case Activation::kSwish:
      return z / (1 + std::exp(-z));
  }
  return 0;
}

D affine_in_double(const D& x, const std::vector<const D*>& weights, const std::vector<const D*>& biases) {
  int64_t outputs = 0;
  for (const D* w : weights) outputs += w->cols();
  D y(x.rows(), outputs);
  for (int64_t i = 0; i < x.rows(); ++i) {
    int64_t column = 0;
    for (size_t n = 0; n < weights.size(); ++n) {
      for (int64_t j = 0; j < weights[n]->cols(); ++j, ++column) {
        double sum = (*biases[n])(0, j);
        for (int64_t k = 0; k < x.cols(); ++k) sum += x(i, k) * (*weights[n])(k, j);
        y(i, column) = sum;
      }
    }
  }
  return y;
}

D rms_norm_in_double(const D& x, const D& gain, double epsilon) {
  D y(x.rows(), x.cols());
  for (int64_t i = 0; i < x.rows(); ++i) {
    double squares = 0;
    for (int64_t j = 0; j < x.cols(); ++j) squares += x(i, j) * x(i, j) / static_cast<double>(x.cols());
    for (int64_t j = 0; j < x.cols(); ++j) y(i, j) = x(i, j) / std::sqrt(squares + epsilon) * gain(0, j);
  }
  return y;
}

D norm_in_double(const D& x, const D& gain, const D& bias) {
  D y(x.rows(), x.cols());
  for (int64_t i = 0; i < x.rows(); ++i) {
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < x.cols(); ++j) mean += x(i, j) / static_cast<double>(x.cols());
    for (int64_t j = 0; j < x.cols(); ++j)
      variance += (x(i, j) - mean) * (x(i, j) - mean) / static_cast<double>(x.cols());
    for (int64_t j = 0; j < x.cols(); ++j)
      y(i, j) = (x(i, j) - mean) / std::sqrt(variance + 1e-5) * gain(0, j) + bias(0, j);
  }
  return y;
}

// What dropout does to [rows, cols], as a matrix of factors.
D factors(const Dropout& drops, int64_t rows, int64_t cols) {
  D f(rows, cols);
  size_t s = 0;
  for (int64_t i = 0; i < rows; ++i) {
    while (i >= drops.offsets[s + 1]) ++s;
    for (int64_t j = 0; j < cols; ++j) {
      const bool kept =
          element_bits(drops.stream, drops.sentences[s], i - drops.offsets[s], j) >= drops.threshold();
      f(i, j) = kept ? drops.keep_scale() : 0;
    }
  }
  return f;
}

const std::vector<int64_t> kSentences = {41, 7};

class FusedAffine : public testing::TestWithParam<Activation> {};

TEST_P(FusedAffine, TwoMatricesWithBiasActivationAndDropout) {
  Rows x(5, 7, 1);
  Parameter w0(7, 3), b0(1, 3), w1(7, 20), b1(1, 20);
  randomise(w0, 2, 0.4);
  randomise(b0, 3);
  randomise(w1, 4, 0.4);
  randomise(b1, 5);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{2, 3});
  const Dropout drops{
      .rate = 0.3f, .stream = dropout_stream(1, 2, 3), .offsets = ragged.offsets(), .sentences = kSentences};
  Affine parameters({&w0, &w1}, {&b0, &b1});
  check({.inputs = {&x.value, &w0, &b0, &w1, &b1},
         .fused =
             [&](Tape& tape) {
               return affine(tape, x.on(tape), parameters, {GetParam(), drops});
             },
         .formula =
             [&](const std::vector<D>& in) {
               D y = affine_in_double(in[0], {&in[1], &in[3]}, {&in[2], &in[4]});
               const D f = factors(drops, y.rows(), y.cols());
               for (int64_t i = 0; i < y.size(); ++i)
                 y.data()[i] = f.data()[i] * activated(GetParam(), y.data()[i]);
               return y;
             }},
        2e-5);
}

INSTANTIATE_TEST_SUITE_P(Activations, FusedAffine,
                         testing::Values(Activation::kNone, Activation::kRelu, Activation::kGelu,
                                         Activation::kGeluTanh, Activation::kSwish));

TEST_P(FusedAffine, OneHalfGatesTheOther) {
  Rows x(53, 5, 1);  // more rows than one block
  Parameter w_gate(5, 19), b_gate(1, 19), w_up(5, 19), b_up(1, 19);
  randomise(w_gate, 2, 0.4);
  randomise(b_gate, 3);
  randomise(w_up, 4, 0.4);
  randomise(b_up, 5);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{22, 31});
  const Dropout drops{
      .rate = 0.3f, .stream = dropout_stream(1, 2, 3), .offsets = ragged.offsets(), .sentences = kSentences};
  Affine both({&w_gate, &w_up}, {&b_gate, &b_up});
  check({.inputs = {&x.value, &w_gate, &b_gate, &w_up, &b_up},
         .fused =
             [&](Tape& tape) {
               return gated_affine(tape, x.on(tape), both, {GetParam(), drops});
             },
         .formula =
             [&](const std::vector<D>& in) {
               D y = affine_in_double(in[0], {&in[1]}, {&in[2]});
               const D up = affine_in_double(in[0], {&in[3]}, {&in[4]});
               const D f = factors(drops, y.rows(), y.cols());
               for (int64_t i = 0; i < y.size(); ++i)
                 y.data()[i] = f.data()[i] * activated(GetParam(), y.data()[i]) * up.data()[i];
               return y;
             }},
        5e-5);
}

class FusedResidual : public testing::TestWithParam<bool> {};

TEST_P(FusedResidual, DropoutSumAndNorm) {
  Rows x(53, 7, 1), residual(53, 19, 2);  // more rows than one block
  Parameter w(7, 19), b(1, 19), gain(1, 19), bias(1, 19);
  randomise(w, 2, 0.4);
  randomise(b, 3);
  randomise(gain, 4);
  randomise(bias, 5);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{22, 31});
  const Dropout drops{
      .rate = 0.25f, .stream = dropout_stream(1, 2, 3), .offsets = ragged.offsets(), .sentences = kSentences};
  Affine parameters({&w}, {&b});
  const NormParameters norm{&gain, &bias};
  const bool normed = GetParam();
  Case c{.inputs = {&x.value, &w, &b, &residual.value},
         .fused =
             [&](Tape& tape) {
               return affine_residual(tape, x.on(tape), parameters, residual.on(tape), drops,
                                      normed ? &norm : nullptr);
             },
         .formula =
             [&](const std::vector<D>& in) {
               D y = affine_in_double(in[0], {&in[1]}, {&in[2]});
               const D f = factors(drops, y.rows(), y.cols());
               for (int64_t i = 0; i < y.size(); ++i)
                 y.data()[i] = f.data()[i] * y.data()[i] + in[3].data()[i];
               return normed ? norm_in_double(y, in[4], in[5]) : y;
             }};
  if (normed) c.inputs.insert(c.inputs.end(), {&gain, &bias});
  check(c, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Norms, FusedResidual, testing::Bool());

TEST(FusedNorm, StandsAlone) {
  Rows x(49, 21, 1);
  Parameter gain(1, 21), bias(1, 21);
  randomise(gain, 4);
  randomise(bias, 5);
  check({.inputs = {&x.value, &gain, &bias},
         .fused =
             [&](Tape& tape) {
               return normalise(tape, x.on(tape), {&gain, &bias});
             },
         .formula = [&](const std::vector<D>& in) { return norm_in_double(in[0], in[1], in[2]); }},
        5e-5);
}

TEST(FusedNorm, MayHaveNoBias) {
  Rows x(49, 21, 1);
  Parameter gain(1, 21);
  randomise(gain, 4);
  check({.inputs = {&x.value, &gain},
         .fused = [&](Tape& tape) { return normalise(tape, x.on(tape), {.gain = &gain}); },
         .formula = [&](const std::vector<D>& in) { return norm_in_double(in[0], in[1], D(1, 21)); }},
        5e-5);
}

TEST(FusedNorm, RmsWithDropoutAndItsOwnEpsilon) {
  Rows x(53, 21, 1);
  Parameter gain(1, 21);
  randomise(gain, 4);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{22, 31});
  const Dropout drops{
      .rate = 0.25f, .stream = dropout_stream(1, 2, 3), .offsets = ragged.offsets(), .sentences = kSentences};
  const NormParameters rms{.gain = &gain, .kind = NormKind::kRms, .epsilon = 0.01f};
  check({.inputs = {&x.value, &gain},
         .fused = [&](Tape& tape) { return normalise(tape, x.on(tape), rms, drops); },
         .formula =
             [&](const std::vector<D>& in) {
               D y = rms_norm_in_double(in[0], in[1], 0.01);
               const D f = factors(drops, y.rows(), y.cols());
               for (int64_t i = 0; i < y.size(); ++i) y.data()[i] *= f.data()[i];
               return y;
             }},
        5e-5);
}

TEST(FusedNorm, RmsAfterAResidualSum) {
  Rows x(49, 7, 1), residual(49, 19, 2);
  Parameter w(7, 19), b(1, 19), gain(1, 19);
  randomise(w, 2, 0.4);
  randomise(b, 3);
  randomise(gain, 4);
  Affine parameters({&w}, {&b});
  const NormParameters rms{.gain = &gain, .kind = NormKind::kRms, .epsilon = 1e-6f};
  check({.inputs = {&x.value, &w, &b, &residual.value, &gain},
         .fused =
             [&](Tape& tape) {
               return affine_residual(tape, x.on(tape), parameters, residual.on(tape), {}, &rms);
             },
         .formula =
             [&](const std::vector<D>& in) {
               D y = affine_in_double(in[0], {&in[1]}, {&in[2]});
               for (int64_t i = 0; i < y.size(); ++i) y.data()[i] += in[3].data()[i];
               return rms_norm_in_double(y, in[4], 1e-6);
             }},
        1e-4);
}

TEST(FusedEmbedding, AddsUpOverRepeatedTokensAndPlaces) {
  Parameter table(5, 37), positions(3, 37);
  randomise(table, 1);
  randomise(positions, 2);
  const std::vector<int32_t> ids = {4, 0, 4, 4, 2}, places = {0, 1, 2, 0, 1};
  check({.inputs = {&table, &positions},
         .fused =
             [&](Tape& tape) {
               return embed(tape, table, ids,
                            {.scale = 3,
                             .positions = positions.value.view(),
                             .positions_of = places,
                             .learned_positions = &positions,
                             .dropout = {}});
             },
         .formula =
             [&](const std::vector<D>& in) {
               D y(5, 37);
               for (int64_t i = 0; i < 5; ++i) {
                 const auto at = static_cast<size_t>(i);
                 for (int64_t c = 0; c < 37; ++c) y(i, c) = 3 * in[0](ids[at], c) + in[1](places[at], c);
               }
               return y;
             }},
        1e-5);
}

TEST(TapeColumns, PassOnTheirShares) {
  // y0 and y1 are columns of one product; only their gradients together make the whole's.
  Rows x(4, 3, 1);
  Parameter w(3, 6), b(1, 6), u(2, 5), c0(1, 5), v(4, 5), c1(1, 5);
  for (Parameter* p : {&w, &b, &u, &c0, &v, &c1}) randomise(*p, 7, 0.5);
  Affine both({&w}, {&b}), first({&u}, {&c0}), second({&v}, {&c1});
  check({.inputs = {&x.value, &w, &b, &u, &c0, &v, &c1},
         .fused =
             [&](Tape& tape) {
               const Var y = affine(tape, x.on(tape), both);
               const Var left = affine(tape, tape.columns(y, 0, 2), first);
               return affine_residual(tape, tape.columns(y, 2, 6), second, left, {}, nullptr);
             },
         .formula =
             [&](const std::vector<D>& in) {
               const D y = affine_in_double(in[0], {&in[1]}, {&in[2]});
               D left(4, 2), right(4, 4);
               for (int64_t i = 0; i < 4; ++i) {
                 for (int64_t j = 0; j < 6; ++j) (j < 2 ? left(i, j) : right(i, j - 2)) = y(i, j);
               }
               D sum = affine_in_double(left, {&in[3]}, {&in[4]});
               const D other = affine_in_double(right, {&in[5]}, {&in[6]});
               for (int64_t i = 0; i < sum.size(); ++i) sum.data()[i] += other.data()[i];
               return sum;
             }},
        1e-5);
}

}  // namespace
}  // namespace mh

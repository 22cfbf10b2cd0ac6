// The task of 003.5: its target, sentences and readers, and the bound.
#include "lab/studies/unique_heads/averaging.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mh::unique_heads::averaging {

using namespace lab;

Target draw_target(uint64_t draw) {
  Random random(draw, 350);
  Matrix p = random_matrix(kContent, kContent, random);
  return {std::move(p), random_matrix(kContent, kContent, random)};
}

std::string percent(double error, const Target& y, int digits) {
  return fmt::format("{:.{}f}", 100 * error / y.variance(), digits);
}

Matrix mixture(const Target& y, double angle) {
  return sum(scaled(y.p, std::cos(angle)), y.r, -std::sin(angle));
}

namespace {

/// The angle in [0, pi / 2] at which `value` is least.
template <class Value>
double best_angle(Value&& value) {
  constexpr int kSteps = 400;
  constexpr double kStep = std::numbers::pi / 2 / kSteps;
  double best = 0, least = value(0.0);
  const auto look = [&](double angle) {
    angle = std::clamp(angle, 0.0, std::numbers::pi / 2);
    const double found = value(angle);
    if (found < least) least = found, best = angle;
  };
  for (int i = 1; i <= kSteps; ++i) look(i * kStep);
  for (double step = kStep / 2; step > 1e-12; step /= 2) {
    const double middle = best;
    look(middle - step), look(middle + step);
  }
  return best;
}

/// What rank 1 misses of a matrix: its squared singular values but the first (Eckart and Young 1936).
double beyond_rank_one(const Matrix& a) {
  const std::vector<double> values = svd(a.view()).values;
  double squares = 0;
  for (size_t i = 1; i < values.size(); ++i) squares += values[i] * values[i];
  return squares;
}

}  // namespace

double angle_of_least_error(const Target& y) {
  return best_angle([&](double angle) { return beyond_rank_one(mixture(y, angle)); });
}

double least_error(const Target& y) {
  return beyond_rank_one(mixture(y, angle_of_least_error(y)));
}

double least_error_by_position(const Target& y) {
  const auto error = [&](double angle) { return std::pow(norm(mixture(y, angle)), 2); };
  return error(best_angle(error));
}

Batch make_batch(const Target& y, int sentences, Random& random) {
  Batch b{Tensor(int64_t{sentences} * kWords, kRow), Matrix(sentences, kContent),
          Ragged::from_lengths(std::vector<int32_t>(static_cast<size_t>(sentences), kWords))};
  for (int s = 0; s < sentences; ++s) {
    const Matrix words = random_matrix(kWords, kContent, random);
    for (int t = 0; t < kWords; ++t) {
      for (int c = 0; c < kContent; ++c) b.x(int64_t{s} * kWords + t, c) = static_cast<float>(words(t, c));
      b.x(int64_t{s} * kWords + t, kContent + t) = kMark;
    }
    for (int i = 0; i < kContent; ++i) {
      for (int j = 0; j < kContent; ++j) b.target(s, i) += y.p(i, j) * words(1, j) + y.r(i, j) * words(2, j);
    }
  }
  return b;
}

Matrix differences(ConstMatrixView y, const Batch& batch) {
  Matrix d(batch.target.rows(), kContent);
  for (int64_t s = 0; s < d.rows(); ++s) {
    for (int c = 0; c < kContent; ++c) d(s, c) = static_cast<double>(y(s * kWords, c)) - batch.target(s, c);
  }
  return d;
}

Reader::Reader(int heads, int wide, uint64_t seed)
    : layer_({.heads = heads, .d_key = 4, .d_value = kRow}, kRow, seed),
      wide_(wide),
      in_(kRow, std::max(1, wide)),
      in_bias_(1, std::max(1, wide)),
      read_(wide ? wide : kRow, kContent),
      read_bias_(1, kContent),
      inner_({&in_}, {&in_bias_}),
      readout_({&read_}, {&read_bias_}) {
  Random random(seed, 351);
  for (Parameter* w : {&in_, &read_}) {
    w->value = in_float(random_matrix(w->value.rows(), w->value.cols(), random,
                                      1 / std::sqrt(static_cast<double>(w->value.rows()))));
  }
}

void Reader::set_readout(const Matrix& w) {
  read_.value = in_float(w);
  read_.changed();
}

std::vector<NamedParameter> Reader::parameters() {
  std::vector<NamedParameter> all = {{"read", &read_}, {"read_bias", &read_bias_}};
  if (wide_) all.insert(all.end(), {{"in", &in_}, {"in_bias", &in_bias_}});
  layer_.attention().visit("layer", [&](const std::string& name, Parameter& q) {
    all.push_back({name, &q});
  });
  return all;
}

Var Reader::operator()(Tape& tape, const Batch& batch) {
  Context context{.tape = tape};
  Var h = layer_.attention().self(context, tape.constant(const_cast<Tensor&>(batch.x).view()),
                                  batch.sequences(), Mask::none());
  if (wide_) h = affine(tape, h, inner_, {.activation = Activation::kRelu, .dropout = {}});
  return affine(tape, h, readout_);
}

double Reader::error(const Batch& batch) {
  Tape tape;
  return std::pow(norm(differences((*this)(tape, batch).value(), batch)), 2) /
         static_cast<double>(batch.target.rows());
}

}  // namespace mh::unique_heads::averaging

// 003.5: its target, sentences and readers, the bound, and how near one trained head comes to it from many starts.
#include "lab/studies/unique_heads/averaging.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "lab/studies/claim_words.h"
#include "lab/studies/unique_heads/claims.h"
#include "multihead/base/thread_pool.h"
#include "multihead/train/adam.h"

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
  return std::inner_product(values.begin() + 1, values.end(), values.begin() + 1, 0.0);
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
  for (const NamedParameter& known : layer_.parameters()) all.push_back(known);
  return all;
}

Var Reader::operator()(Tape& tape, const Batch& batch) {
  Context context{.tape = tape};
  Var h = layer_.attention().self(context, tape.constant(const_cast<Tensor&>(batch.x).view()),
                                  batch.sequences(), Mask::none());
  if (wide_) h = affine(tape, h, inner_, {.activation = Activation::kRelu, .dropout = {}});
  return affine(tape, h, readout_);
}

namespace {

/// y - target in the row of word 0 of each sentence, else 0: [sentences * kWords, kContent], as y is.
Matrix differences(ConstMatrixView y, const Batch& batch) {
  Matrix d(y.rows, kContent);
  for (int64_t s = 0; s < batch.target.rows(); ++s) {
    for (int c = 0; c < kContent; ++c)
      d(s * kWords, c) = static_cast<double>(y(s * kWords, c)) - batch.target(s, c);
  }
  return d;
}

/// The error on `test` after training from the start that `seed` gives.
double trained_error(int heads, int wide, const Target& y, const Batch& test, uint64_t seed, int updates) {
  constexpr int kSentences = 64;
  Reader reader(heads, wide, seed);
  Adam adam(reader.parameters(), {.beta2 = 0.99});
  Random random(seed, 352);
  Tape tape(Tape::Mode::kRecord);
  for (int update = 1; update <= updates; ++update) {
    const Batch batch = make_batch(y, kSentences, random);
    tape.clear();
    const Var out = reader(tape, batch);
    tape.seed(out, in_float(scaled(differences(out.value(), batch), 2.0 / kSentences)).view());
    tape.backward();
    adam.update(0.04 * (updates - update) / updates);
  }
  return reader.error(test);
}

}  // namespace

double Reader::error(const Batch& batch) {
  Tape tape;
  return std::pow(norm(differences((*this)(tape, batch).value(), batch)), 2) /
         static_cast<double>(batch.target.rows());
}

Claim claim_of(std::span<const Reached> draws) {
  // Of the bound, since the test sentences are a sample: its standard error is about 1 %.
  constexpr double kSampling = 0.97;
  constexpr double kFar = 0.01;  // of the variance
  const size_t starts = draws.front().one_head.size(), fewer = draws.front().two_heads.size();
  Claim claim = claim_without_figures("003.5, trained", {{"starts", std::to_string(starts)},
                                                         {"fewer", std::to_string(fewer)},
                                                         {"draws", std::to_string(draws.size())}});
  std::vector<double> bounds, two_heads;           // in shares of the variance
  std::vector<double> one_head, wide_ones, gains;  // in times the bound
  for (const Reached& of : draws) {
    const Target& y = of.target;
    const auto [best, worst] = std::ranges::minmax(of.one_head);
    const double bound = least_error(y), quarter = std::ranges::min(std::span(of.one_head).first(fewer)),
                 wide = std::ranges::min(of.feed_forward), two = std::ranges::min(of.two_heads);
    bounds.push_back(bound / y.variance()), two_heads.push_back(two / y.variance());
    one_head.push_back(best / bound), wide_ones.push_back(wide / bound);
    gains.push_back((quarter - best) / bound);
    claim.tables[0].rows.push_back({std::to_string(of.draw), percent(least_error_by_position(y), y),
                                    percent(bound, y, 2), percent(quarter, y, 2), percent(best, y, 2),
                                    percent(worst, y, 2), percent(wide, y, 2), percent(two, y, 4)});
    Series series{.name = fmt::format("draw {}: bound {} %", of.draw, percent(bound, y))};
    for (const double error : of.one_head) series.y.push_back(100 * error / y.variance());
    claim.plots[0].series.push_back(std::move(series));
  }
  const auto [least, most] = std::ranges::minmax(one_head);
  const auto [least_wide, most_wide] = std::ranges::minmax(wide_ones);
  const double smallest = std::ranges::min(bounds), missed = std::ranges::max(two_heads);
  decide(claim, smallest > kFar, fmt::format("the smallest is {:.1f} %", 100 * smallest));
  decide(claim, least >= kSampling, fmt::format("{:.3f} times at least", least));
  decide(claim, least_wide >= kSampling, fmt::format("from {:.3f} to {:.3f} times", least_wide, most_wide));
  decide(claim, missed <= kFar, fmt::format("{:.4f} % at most", 100 * missed));
  measure(claim, fmt::format("the best of {} starts has between {:.3f} and {:.3f} times the bound", starts,
                             least, most));
  measure(claim, fmt::format(
                     "the best of {} is lower than the best of the first {} by at most {:.1f} % of the bound",
                     starts, fewer, 100 * std::ranges::max(gains)));
  return claim;
}

}  // namespace mh::unique_heads::averaging

namespace mh::unique_heads {

Claim averaging_inhibits(std::span<const uint64_t> draws, int starts, int updates) {
  using namespace averaging;
  constexpr int kTest = 1 << 15;
  std::vector<Reached> reached;
  std::vector<Batch> tests;
  for (const uint64_t draw : draws) {
    Random random(draw, 354);
    reached.push_back({.draw = draw, .target = draw_target(draw)});
    tests.push_back(make_batch(reached.back().target, kTest, random));
  }
  // The same starts for all draws.
  const auto train = [&](std::vector<double> Reached::*errors, int heads, int wide, int count) {
    for (Reached& of : reached) (of.*errors).resize(static_cast<size_t>(count));
    parallel_for(static_cast<int64_t>(draws.size()) * count, [&](int64_t i) {
      const auto draw = static_cast<size_t>(i / count), start = static_cast<size_t>(i % count);
      (reached[draw].*errors)[start] =
          trained_error(heads, wide, reached[draw].target, tests[draw], start + 1, updates);
    });
  };
  const int fewer = std::max(1, starts / 4);
  train(&Reached::one_head, 1, 0, starts);
  train(&Reached::feed_forward, 1, 32, fewer);
  train(&Reached::two_heads, 2, 0, fewer);
  return claim_of(reached);
}

}  // namespace mh::unique_heads

// 002.3's times: what the clock says of two matrices and of one, and what the time consists of.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lab/studies/claim_words.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/nn/attention_positions.h"
#include "multihead/nn/heads.h"

namespace mh::two_matrices_or_one {
namespace {

using namespace lab;

constexpr int kValue = 16;

struct Shape {
  int tokens, d_model, d_key;
};

/// Microseconds of a layer's forward pass.
struct Parts {
  double all = 1e30;
  double projections = 1e30;                         // queries, keys and values
  double rest() const { return all - projections; }  // scores, softmax, values and W^O
};

struct Timed {
  Timed(const Shape& s, Scores scores)
      : layer({.heads = 2, .d_key = s.d_key, .d_value = kValue, .scores = scores, .biases = Biases::kNone},
              s.d_model, 1),
        ragged(Ragged::from_lengths(std::vector<int32_t>{s.tokens})) {
    Random random(1, 23);
    rows = in_float(random_matrix(s.tokens, s.d_model, random));
  }
  /// Keeps the quickest of all runs: what else the machine does only adds time.
  void run() {
    Tape tape;
    Context context{.tape = tape};
    const Var x = tape.constant(rows.view());
    const auto project = [&] { layer.attention().project(context, x, {.offsets = ragged.offsets()}); };
    const auto attend = [&] {
      layer.attention().self(context, x, {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::none());
    };
    const auto keep_quickest = [](double& quickest, const auto& timed) {
      const auto begin = std::chrono::steady_clock::now();
      timed();
      const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
      quickest = std::min(quickest, time.count());
    };
    project();  // its weights are in the cache now
    keep_quickest(parts.projections, project);
    keep_quickest(parts.all, attend);
  }

  Layer layer;
  Ragged ragged;
  Tensor rows;
  Parts parts;
};

struct Measured {
  Shape shape;
  Parts two, one;
  double same = 0;  // the rest of a layer with d_k = 1: softmax, values and W^O, which both need

  // Multiplications of both heads; of the projections those of the values, too.
  double projections(bool merged) const {
    const double t = shape.tokens, d = shape.d_model, k = shape.d_key;
    return 2 * t * d * (merged ? d : 2 * k) + values();
  }
  double scores(bool merged) const {
    const double t = shape.tokens;
    return 2 * t * t * (merged ? shape.d_model : shape.d_key);
  }
  double values() const { return 2.0 * shape.tokens * shape.d_model * kValue; }
  double count(bool merged) const { return projections(merged) + scores(merged) - values(); }
  double count_ratio() const { return count(true) / count(false); }
  double score_time(bool merged) const { return std::max(0.0, (merged ? one : two).rest() - same); }
  double time_ratio() const { return one.all / two.all; }
  /// How many times as many one of the two takes as the other.
  double apart() const { return std::max(count_ratio(), 1 / count_ratio()); }
  bool agree() const { return (count_ratio() < 1) == (time_ratio() < 1); }
  std::string name() const { return fmt::format("{}, {}, {}", shape.tokens, shape.d_model, shape.d_key); }
};

Measured measured(const Shape& s) {
  constexpr int kRuns = 25;
  Timed two(s, Scores::kQueryKey), one(s, Scores::kMerged), same({s.tokens, s.d_model, 1}, Scores::kQueryKey);
  for (int i = 0; i < kRuns; ++i) {
    for (Timed* layer : {&two, &one, &same}) layer->run();
  }
  return {s, two.parts, one.parts, same.parts.rest()};
}

/// Why the time of a shape does not follow the count.
std::string explained(const Measured& m) {
  const auto rate = [](double multiplications, double us) { return multiplications / us / 1000; };
  return fmt::format(
      "at T, d, d_k = {} one matrix takes {:.2f} times the multiplications and {:.2f} times the time; {:.0f} "
      "% of the time of two is softmax, values and W^O, and a nanosecond does {:.0f} multiplications of the "
      "projections, {:.0f} of the scores",
      m.name(), m.count_ratio(), m.time_ratio(), 100 * m.same / m.two.all,
      rate(m.projections(false), m.two.projections), rate(m.scores(false), m.score_time(false)));
}

}  // namespace

Claim times(ArmRunner&) {
  constexpr double kFar = 1.5;
  Claim claim = claim_without_figures("002.3, times");
  const auto number = [](double us) { return fmt::format("{:.0f}", us); };
  const auto ratio = [](double of) { return fmt::format("{:.2f}", of); };
  int agree = 0, far = 0, far_agree = 0;
  std::optional<Measured> nearest;
  for (const Shape& s : {Shape{16, 256, 256}, Shape{64, 256, 224}, Shape{512, 256, 64}, Shape{512, 128, 32},
                         Shape{32, 128, 128}, Shape{1024, 128, 96}}) {
    const Measured m = measured(s);
    agree += m.agree();
    far += m.apart() >= kFar;
    far_agree += m.apart() >= kFar && m.agree();
    if (!nearest || m.apart() < nearest->apart()) nearest = m;
    claim.tables[0].rows.push_back({m.name(), number(m.two.all), number(m.one.all), ratio(m.time_ratio()),
                                    ratio(m.count_ratio()), m.agree() ? "yes" : "no"});
    claim.tables[1].rows.push_back({m.name(), number(m.two.projections), number(m.one.projections),
                                    number(m.same), number(m.score_time(false)), number(m.score_time(true))});
  }
  measure(claim, fmt::format("{} of {}; of the shapes where the counts differ by {} times or more, {} of {}",
                             agree, claim.tables[0].rows.size(), kFar, far_agree, far));
  measure(claim, explained(*nearest));
  return claim;
}

}  // namespace mh::two_matrices_or_one

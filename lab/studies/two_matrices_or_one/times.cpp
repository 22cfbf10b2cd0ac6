// 002.3's times: what the clock says of two matrices and of one, and what the time consists of.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lab/studies/lab.h"
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
  double all = std::numeric_limits<double>::infinity();
  double projections = std::numeric_limits<double>::infinity();  // queries, keys and values
  double rest() const { return all - projections; }              // scores, softmax, values and W^O
};

class Timed {
 public:
  Timed(const Shape& s, Scores scores)
      : layer_({.heads = 2, .d_key = s.d_key, .d_value = kValue, .scores = scores, .biases = Biases::kNone},
               s.d_model, 1),
        ragged_(Ragged::from_lengths(std::vector<int32_t>{s.tokens})) {
    Random random(1, 23);
    x_ = in_float(random_matrix(s.tokens, s.d_model, random));
  }
  /// Keeps the quickest of all runs: what else the machine does only adds time.
  void run() {
    Tape tape;
    Context context{.tape = tape};
    const Var x = tape.constant(x_.view());
    layer_.attention().project(context, x,
                               {.offsets = ragged_.offsets()});  // its weights are in the cache now
    const auto begin = Clock::now();
    layer_.attention().project(context, x, {.offsets = ragged_.offsets()});
    const auto middle = Clock::now();
    layer_.attention().self(context, x, {.ids = {}, .ragged = &ragged_, .sentences = {}}, Mask::none());
    const auto end = Clock::now();
    parts_.projections = std::min(parts_.projections, microseconds(middle - begin));
    parts_.all = std::min(parts_.all, microseconds(end - middle));
  }
  const Parts& parts() const { return parts_; }

 private:
  using Clock = std::chrono::steady_clock;
  static double microseconds(Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
  }
  Layer layer_;
  Ragged ragged_;
  Tensor x_;
  Parts parts_;
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
  double count_ratio() const {
    return (projections(true) + scores(true) - values()) / (projections(false) + scores(false) - values());
  }
  double score_time(bool merged) const { return std::max(0.0, (merged ? one : two).rest() - same); }
  double time_ratio() const { return one.all / two.all; }
  /// How many times as many one of the two takes as the other.
  double apart() const { return std::max(count_ratio(), 1 / count_ratio()); }
  bool agree() const { return (count_ratio() < 1) == (time_ratio() < 1); }
  std::string name() const { return fmt::format("{}, {}, {}", shape.tokens, shape.d_model, shape.d_key); }
};

Measured measure(const Shape& s) {
  constexpr int kRuns = 25;
  Timed two(s, Scores::kQueryKey), one(s, Scores::kMerged), same({s.tokens, s.d_model, 1}, Scores::kQueryKey);
  for (int i = 0; i < kRuns; ++i) {
    for (Timed* layer : {&two, &one, &same}) layer->run();
  }
  return {s, two.parts(), one.parts(), same.parts().rest()};
}

/// Why the time of a shape does not follow the count.
std::string explained(const Measured& m) {
  const auto rate = [](double multiplications, double us) { return multiplications / us / 1000; };
  return fmt::format(
      "at T, d, d_k = {} one matrix takes {:.2f} times the multiplications and {:.2f} times the time; {:.0f} "
      "% of "
      "the time of two is softmax, values and W^O, and a nanosecond does {:.0f} multiplications of the "
      "projections, {:.0f} of the scores",
      m.name(), m.count_ratio(), m.time_ratio(), 100 * m.same / m.two.all,
      rate(m.projections(false), m.two.projections), rate(m.scores(false), m.score_time(false)));
}

}  // namespace

Claim times(ArmRunner&) {
  constexpr double kFar = 1.5;
  Claim claim{
      .id = "002.3, times",
      .statement =
          "The time of a layer follows the multiplications of its scores only roughly: softmax, values and "
          "W^O "
          "take the same time in both, and multiplications of projections and of scores are not equally "
          "quick.",
      .original_words =
          "\"In deep learning applications, I think it would be very inefficient\" (the asker, of two "
          "matrices).",
      .original_remark =
          "002.3 counts it: with d_k = d/h and several heads two matrices take fewer multiplications than "
          "one."};
  Table table{"a layer's forward pass, 2 heads, values of 16 numbers, microseconds: the quickest of 25 runs",
              {"T, d, d_k", "two", "one", "time, one : two", "multiplications, one : two", "same side"},
              {}},
      parts{
          "the same time in parts: projections of queries, keys and values; softmax, values and W^O, which "
          "both need; the scores",
          {"T, d, d_k", "projections: two", "one", "both need", "scores: two", "one"},
          {}};
  int agree = 0, far = 0, far_agree = 0;
  std::optional<Measured> nearest;
  for (const Shape& s : {Shape{16, 256, 256}, Shape{64, 256, 224}, Shape{512, 256, 64}, Shape{512, 128, 32},
                         Shape{32, 128, 128}, Shape{1024, 128, 96}}) {
    const Measured m = measure(s);
    agree += m.agree();
    far += m.apart() >= kFar;
    far_agree += m.apart() >= kFar && m.agree();
    if (!nearest || m.apart() < nearest->apart()) nearest = m;
    const auto number = [](double us) { return fmt::format("{:.0f}", us); };
    table.rows.push_back({m.name(), number(m.two.all), number(m.one.all),
                          fmt::format("{:.2f}", m.time_ratio()), fmt::format("{:.2f}", m.count_ratio()),
                          m.agree() ? "yes" : "no"});
    parts.rows.push_back({m.name(), number(m.two.projections), number(m.one.projections), number(m.same),
                          number(m.score_time(false)), number(m.score_time(true))});
  }
  claim.clauses = {
      measured_only(
          "In how many shapes the quicker one is the one with fewer multiplications.",
          fmt::format("{} of {}; of the shapes where the counts differ by {} times or more, {} of {}", agree,
                      table.rows.size(), kFar, far_agree, far),
          Evidence::kAlgebra),
      measured_only("What the time consists of where the counts are nearest to each other.",
                    explained(*nearest), Evidence::kAlgebra)};
  claim.tables = {std::move(table), std::move(parts)};
  return claim;
}

}  // namespace mh::two_matrices_or_one

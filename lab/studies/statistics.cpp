#include "lab/studies/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"

namespace mh {
namespace {

/// P(T >= t) for t = (mean - bound) / error: how unlikely so large a mean is at the bound.
double upper(const Interval& mean, double error, int degrees, double bound) {
  if (error == 0) return mean.mean > bound ? 0 : 1;
  return 1 - student_probability((mean.mean - bound) / error, degrees);
}

/// Of a test that may find either side.
double two_sided(double p) {
  return std::min(1.0, 2 * p);
}

Decision decide_alone(const Question& question) {
  Decision d{.interval = interval_of(question.numbers)};
  const int degrees = static_cast<int>(question.numbers.size()) - 1;
  if (degrees < 1) return d;
  const double error = d.interval.half / student_quantile(degrees);
  const auto p_above = [&](double bound) { return upper(d.interval, error, degrees, bound); };
  const auto p_below = [&](double bound) {
    return upper({-d.interval.mean, d.interval.half}, error, degrees, -bound);
  };
  const double bound = question.limit.bound;
  double pass = 1, fail = 1;
  switch (question.limit.kind) {
    case Limit::Kind::kAbove:
      pass = two_sided(p_above(bound)), fail = two_sided(p_below(bound));
      break;
    case Limit::Kind::kBelow:
      pass = two_sided(p_below(bound)), fail = two_sided(p_above(bound));
      break;
    case Limit::Kind::kWithin:
      // Both tests must reject, so neither is given half of the level; outside is on either side.
      pass = std::max(p_above(-bound), p_below(bound));
      fail = two_sided(std::min(p_above(bound), p_below(-bound)));
      break;
  }
  d.verdict = pass < fail ? Verdict::kPass : Verdict::kFail;
  d.p = std::min(pass, fail);
  return d;
}

std::string limit_text(const Limit& limit, const std::string& unit) {
  switch (limit.kind) {
    case Limit::Kind::kAbove:
      return fmt::format("above {:g}{}", limit.bound, unit);
    case Limit::Kind::kBelow:
      return fmt::format("below {:g}{}", limit.bound, unit);
    case Limit::Kind::kWithin:
      break;
  }
  return fmt::format("between -{0:g}{1} and {0:g}{1}", limit.bound, unit);
}

/// A margin can be left on either side, which FAIL alone does not say.
std::string_view side_of(const Limit& limit, const Decision& d) {
  if (limit.kind != Limit::Kind::kWithin || d.verdict != Verdict::kFail) return "";
  return d.interval.mean > 0 ? ", higher than the margin" : ", lower than the margin";
}

}  // namespace

std::vector<double> paired(std::span<const double> a, std::span<const double> b) {
  MH_ASSERT(a.size() == b.size());
  std::vector<double> differences;
  for (size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  return differences;
}

Interval difference_of(std::span<const double> a, std::span<const double> b) {
  return interval_of(paired(a, b));
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> corrected(p.size());
  double before = 0;
  for (size_t k = 0; k < order.size(); ++k)
    corrected[order[k]] = before =
        std::max(before, std::min(1.0, p[order[k]] * static_cast<double>(order.size() - k)));
  return corrected;
}

std::vector<Decision> decide(std::span<const Question> questions) {
  std::vector<Decision> decisions;
  for (const Question& question : questions) decisions.push_back(decide_alone(question));
  std::vector<double> p;
  for (const Decision& d : decisions) p.push_back(d.p);
  p = holm(p);
  for (size_t i = 0; i < p.size(); ++i) {
    decisions[i].p = p[i];
    if (p[i] > kLevel) decisions[i].verdict = Verdict::kUndecided;
  }
  return decisions;
}

void add_predictions(Claim& claim, const std::vector<Prediction>& predictions) {
  std::vector<Question> questions;
  for (const Prediction& p : predictions) questions.push_back({p.by_seed, p.limit});
  const std::vector<Decision> decisions = decide(questions);
  for (size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& p = predictions[i];
    const Decision& d = decisions[i];
    claim.clauses.push_back(
        {.statement = p.statement,
         .asked = fmt::format("{}: {}", p.quantity, limit_text(p.limit, p.unit)),
         .measured = fmt::format(
             "{}{}{}, {} seeds, p {}{}", interval_text(d.interval, p.digits), p.unit, side_of(p.limit, d),
             p.by_seed.size(), d.p < 0.001 ? "< 0.001" : fmt::format("= {:.3f}", d.p),
             predictions.size() > 1 ? fmt::format(" (Holm's, of {} comparisons)", predictions.size()) : ""),
         .verdict = d.verdict,
         .kind = Evidence::kTrained,
         .original = p.original});
  }
}

std::string interval_text(const Interval& interval, int digits) {
  // No "-0.000".
  const double mean = std::abs(interval.mean) < 0.5 * std::pow(10, -digits) ? 0 : interval.mean;
  if (!std::isfinite(interval.half)) return fmt::format("{:.{}f}", mean, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", mean, digits, interval.half, digits);
}

}  // namespace mh

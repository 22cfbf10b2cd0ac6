#include "lab/studies/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "lab/studies/claim_words.h"
#include "multihead/base/error.h"

namespace mh {
namespace {

Decision decide_alone(const Prediction& prediction) {
  Decision d{.interval = interval_of(prediction.by_seed)};
  const int degrees = static_cast<int>(prediction.by_seed.size()) - 1;
  if (degrees < 1) return d;
  const auto& [kind, bound] = prediction.limit;
  const double mean = d.interval.mean, error = d.interval.half / student_quantile(degrees);
  // P(T >= t): how unlikely a distance t * error of the mean from a limit is, were the mean at the limit.
  const auto upper = [&](double distance) {
    if (error == 0) return distance > 0 ? 0.0 : 1.0;
    return 1 - student_probability(distance / error, degrees);
  };
  const auto p_above = [&](double limit) { return upper(mean - limit); };
  const auto p_below = [&](double limit) { return upper(limit - mean); };
  const auto two_sided = [](double p) { return std::min(1.0, 2 * p); };  // it may find either side
  double pass = two_sided(p_above(bound)), fail = two_sided(p_below(bound));
  if (kind == Limit::Kind::kBelow) std::swap(pass, fail);
  if (kind == Limit::Kind::kWithin) {
    // Both tests must reject, so neither is given half of the level; outside is on either side.
    pass = std::max(p_above(-bound), p_below(bound));
    fail = two_sided(std::min(p_above(bound), p_below(-bound)));
  }
  d.verdict = pass < fail ? Verdict::kPass : Verdict::kFail;
  d.p = std::min(pass, fail);
  return d;
}

/// A margin can be left on either side, which FAIL alone does not say.
std::string_view side_of(const Limit& limit, const Decision& d) {
  if (limit.kind != Limit::Kind::kWithin || d.verdict != Verdict::kFail) return "";
  return d.interval.mean > 0 ? ", higher than the margin" : ", lower than the margin";
}

}  // namespace

std::vector<double> paired(std::span<const double> a, std::span<const double> b) {
  MH_ASSERT(a.size() == b.size());
  std::vector<double> differences(a.size());
  std::ranges::transform(a, b, differences.begin(), std::minus());
  return differences;
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

std::vector<Decision> decide(std::span<const Prediction> predictions) {
  std::vector<Decision> decisions;
  std::vector<double> p;
  for (const Prediction& of : predictions) p.push_back(decisions.emplace_back(decide_alone(of)).p);
  p = holm(p);
  for (size_t i = 0; i < p.size(); ++i) {
    decisions[i].p = p[i];
    if (p[i] > kLevel) decisions[i].verdict = Verdict::kUndecided;
  }
  return decisions;
}

std::string limit_text(const Limit& limit, const std::string& unit) {
  if (limit.kind == Limit::Kind::kWithin)
    return fmt::format("between -{0:g}{1} and {0:g}{1}", limit.bound, unit);
  return fmt::format("{} {:g}{}", limit.kind == Limit::Kind::kAbove ? "above" : "below", limit.bound, unit);
}

void predict(Claim& claim, const std::vector<Prediction>& predictions) {
  const std::vector<Decision> decisions = decide(predictions);
  for (size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& p = predictions[i];
    const Decision& d = decisions[i];
    Clause& clause = next_clause(claim);
    clause.asked += ": " + limit_text(p.limit, p.unit);
    clause.measured = fmt::format(
        "{}{}{}, {} seeds, p {}{}", interval_text(d.interval, p.digits), p.unit, side_of(p.limit, d),
        p.by_seed.size(), d.p < 0.001 ? "< 0.001" : fmt::format("= {:.3f}", d.p),
        predictions.size() > 1 ? fmt::format(" (Holm's, of {} comparisons)", predictions.size()) : "");
    clause.verdict = d.verdict;
  }
}

std::string interval_text(const Interval& interval, int digits) {
  // No "-0.000".
  const double mean = std::abs(interval.mean) < 0.5 * std::pow(10, -digits) ? 0 : interval.mean;
  if (!std::isfinite(interval.half)) return fmt::format("{:.{}f}", mean, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", mean, digits, interval.half, digits);
}

std::string interval_text(std::span<const double> numbers, int digits) {
  return interval_text(interval_of(numbers), digits);
}

}  // namespace mh

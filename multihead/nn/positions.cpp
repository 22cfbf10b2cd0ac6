#include "multihead/nn/positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/nn/head_scheme.h"

namespace mh {
namespace {

/// The logarithm in single precision, as transformers has it, of a ratio in single precision: it decides where a distance is on
/// the border of two buckets.
float log_in_single(double of) {
  return static_cast<float>(std::log(static_cast<double>(static_cast<float>(of))));
}

}  // namespace

std::vector<std::string> problems_of(Positions positions, const HeadGeometry& geometry, int d_model) {
  if (positions == Positions::kDisentangled) {
    const HeadGeometry g = completed(geometry, d_model, "disentangled");
    if (g.scores == Scores::kQueryKey && g.input.kind == HeadInput::Kind::kWholeRow && has_own_keys(g) &&
        g.query_key_norm == QueryKeyNorm::kNone && softmaxes_per_head(g) == 1)
      return {};
    return {
        "positions disentangled need heads that read whole rows and have query_key scores, one softmax and "
        "keys of their own without a norm; use alibi, t5 or shaw"};
  }
  if (positions != Positions::kRotary) return {};
  const HeadScheme& scheme = scheme_of(geometry);
  if (!scheme.projects_keys()) {
    return {fmt::format(
        "positions rotary turn queries and keys, of which {} scores have none of their own; use alibi, t5 or "
        "shaw, or set scores to query_key",
        name_of(geometry.scores, kScoresNames))};
  }
  const int size = key_size(completed(geometry, d_model, "rotary"), d_model);
  if (size % 2 == 0) return {};
  return {
      fmt::format("positions rotary turn pairs of numbers, but a key has {}; set {} to an even number, for "
                  "example {}",
                  size, scheme.key_size_field(), size + 1)};
}

std::vector<float> alibi_slopes(int heads) {
  std::vector<float> slopes;
  for (int i = 1; i <= heads; ++i) slopes.push_back(static_cast<float>(std::exp2(-8.0 * i / heads)));
  return slopes;
}

std::string problem_of(const T5Buckets& buckets) {
  constexpr int kMost = 1 << 12;
  if (buckets.count < 4 || buckets.count > kMost)
    return fmt::format("the number of buckets is {}; expected 4 ... {}", buckets.count, kMost);
  const int least = buckets.count / 2 + 1;
  if (buckets.farthest < least || buckets.farthest > kMost)
    return fmt::format("the farthest distance with a bucket is {}; with {} buckets expected {} ... {}",
                       buckets.farthest, buckets.count, least, kMost);
  return {};
}

std::string problem_of(const DisentangledOptions& options) {
  constexpr int kMost = 1 << 15;
  if (options.span < 1 || options.span > kMost)
    return fmt::format("the distances of one sign have {} vectors; expected 1 ... {}", options.span, kMost);
  if (options.farthest == 0) return {};
  const int half = options.span / 2;
  if (half < 2) return fmt::format("there are {} buckets of one sign; expected at least 4", options.span);
  if (options.farthest - 1 <= half || options.farthest > kMost)
    return fmt::format("the farthest distance with a bucket is {}; with {} buckets expected {} ... {}",
                       options.farthest, options.span, half + 2, kMost);
  return {};
}

int disentangled_column(int distance, const DisentangledOptions& options) {
  int bucket = distance;
  const int half = options.span / 2, away = std::abs(distance);
  if (options.farthest > 0 && away > half) {
    const float share = log_in_single(away / static_cast<double>(half)) /
                        log_in_single((options.farthest - 1) / static_cast<double>(half));
    bucket = static_cast<int>(std::ceil(share * static_cast<float>(half - 1))) + half;
    if (distance < 0) bucket = -bucket;
  }
  return std::clamp(bucket + options.span, 0, 2 * options.span - 1);
}

int t5_bucket(int distance, AttentionDirection direction, const T5Buckets& buckets) {
  int count = buckets.count, first = 0;
  int away = std::max(0, -distance);
  if (direction == AttentionDirection::kBidirectional) {
    count /= 2;
    first = distance > 0 ? count : 0;
    away = std::abs(distance);
  }
  const int exact = count / 2;
  if (away < exact) return first + away;
  const float ratio = static_cast<float>(away) / static_cast<float>(exact);
  const float share =
      log_in_single(static_cast<double>(ratio)) /
      log_in_single(static_cast<double>(buckets.farthest) / exact);  // of the way to the farthest
  return first + std::min(count - 1, exact + static_cast<int>(share * static_cast<float>(count - exact)));
}

}  // namespace mh

#include "multihead/nn/positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/nn/head_scheme.h"

namespace mh {

std::vector<std::string> problems_of(Positions positions, const HeadGeometry& geometry, int d_model) {
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
  // In single precision as transformers has it, which decides where a distance is on the border of two buckets.
  const auto log_in_single = [&](double of) { return static_cast<float>(std::log(of)); };
  const float ratio = static_cast<float>(away) / static_cast<float>(exact);
  const float share =
      log_in_single(static_cast<double>(ratio)) /
      log_in_single(static_cast<double>(buckets.farthest) / exact);  // of the way to the farthest
  return first + std::min(count - 1, exact + static_cast<int>(share * static_cast<float>(count - exact)));
}

}  // namespace mh

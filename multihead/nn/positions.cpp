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

int t5_bucket(int distance, AttentionDirection direction) {
  int buckets = kT5Buckets, first = 0;
  int away = std::max(0, -distance);
  if (direction == AttentionDirection::kBidirectional) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    away = std::abs(distance);
  }
  const int exact = buckets / 2;
  if (away < exact) return first + away;
  const double share = std::log(static_cast<double>(away) / exact) /
                       std::log(static_cast<double>(kT5Farthest) / exact);  // of the way to the farthest
  return first + std::min(buckets - 1, exact + static_cast<int>(share * (buckets - exact)));
}

}  // namespace mh

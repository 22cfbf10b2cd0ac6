#include "multihead/heads/reports/trace/position_bias.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace mh {

std::optional<PositionBias> position_bias(const MultiHeadAttention& layer, const LayerParameters& parameters,
                                          const SoftmaxQueries& q, int64_t keys) {
  const auto by_distance = [&](std::string formula, const auto& number) {
    PositionBias bias{std::move(formula), Tensor(q.rows.rows, keys)};
    for (int64_t i = 0; i < q.rows.rows; ++i) {
      for (int64_t j = 0; j < keys; ++j)
        bias.value(i, j) = number(i, static_cast<int>(j - (i + keys - q.rows.rows)));
    }
    return bias;
  };
  switch (layer.config().positions) {
    case Positions::kAlibi: {
      const float slope = alibi_slopes(layer.heads())[static_cast<size_t>(q.head)];
      return by_distance(fmt::format("-{:.4g} |distance|", slope), [&](int64_t, int distance) {
        return 0 - slope * static_cast<float>(std::abs(distance));  // no -0
      });
    }
    case Positions::kT5: {
      const Tensor& table = *parameters.find("distance_bias");
      return by_distance(
          fmt::format("distance_bias[{}, bucket of the distance]", q.softmax), [&](int64_t, int distance) {
            return table(q.softmax,
                         t5_bucket(distance, layer.config().mask.direction(), layer.config().buckets));
          });
    }
    case Positions::kShaw: {
      const Tensor& vectors = *parameters.find("distance_keys");
      return by_distance(fmt::format("{:.4g} {} distance_keys[:, {} + distance]", q.scale, q.name, kShawClip),
                         [&](int64_t i, int distance) {
                           const int column = kShawClip + std::clamp(distance, -kShawClip, kShawClip);
                           float product = 0;
                           for (int64_t c = 0; c < q.rows.cols; ++c)
                             product += q.rows(i, c) * vectors(c, column);
                           return q.scale * product;
                         });
    }
    case Positions::kSinusoidal:
    case Positions::kLearned:
    case Positions::kRotary:
    case Positions::kNone:
      break;
  }
  return std::nullopt;
}

}  // namespace mh

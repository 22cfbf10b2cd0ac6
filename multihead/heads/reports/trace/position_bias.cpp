#include "multihead/heads/reports/trace/position_bias.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "multihead/kernels/norm.h"
#include "multihead/nn/heads.h"

namespace mh {
namespace {

/// k^r or q^r of a head: [2 span, d_key], what the queries or keys meet in disentangled attention. part: whose projection it is.
Tensor met_vectors(const MultiHeadAttention& layer, const LayerParameters& parameters, HeadPart part,
                   int head) {
  const DisentangledOptions& options = layer.config().disentangled;
  const auto named = [&](const char* own, const std::string& shared) {
    return parameters.find(options.shared_projections ? shared : fmt::format("{}{}", own, letter_of(part)));
  };
  const Tensor& w = *named("distance_w_", weight_name(part));
  const Tensor* const b = named("distance_b_", bias_name(part));  // null: heads without biases
  Tensor vectors = copied(parameters.find("distance_vectors")->view());
  if (options.normed) {
    const Norm norm{.kind = NormKind::kLayer,
                    .epsilon = layer.config().norm_epsilon,
                    .gain = parameters.find("distance_norm.gain")->view(),
                    .bias = parameters.find("distance_norm.bias")->view()};
    normalise(norm, vectors.view(), vectors.view(), nullptr, nullptr);
  }
  const int64_t size = layer.geometry().d_key;
  Tensor met(vectors.rows(), size);
  for (int64_t c = 0; c < met.rows(); ++c) {
    for (int64_t n = 0; n < size; ++n) {
      const int64_t column = head * size + n;
      double sum = b != nullptr ? static_cast<double>((*b)(0, column)) : 0;
      for (int64_t m = 0; m < vectors.cols(); ++m)
        sum += static_cast<double>(vectors(c, m)) * static_cast<double>(w(m, column));
      met(c, n) = static_cast<float>(sum);
    }
  }
  return met;
}

}  // namespace

std::optional<PositionBias> position_bias(const MultiHeadAttention& layer, const LayerParameters& parameters,
                                          const SoftmaxQueries& q) {
  const int64_t keys = q.keys.rows;
  const auto matrix = [&](std::string formula, const auto& number) {
    PositionBias bias{std::move(formula), Tensor(q.rows.rows, keys)};
    for (int64_t i = 0; i < q.rows.rows; ++i) {
      for (int64_t j = 0; j < keys; ++j)
        bias.value(i, j) = number(i, j, static_cast<int>(j - (i + keys - q.rows.rows)));
    }
    return bias;
  };
  const auto by_distance = [&](const std::string& formula, const auto& number) {
    return matrix(formula, [&](int64_t i, int64_t, int distance) { return number(i, distance); });
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
    case Positions::kDisentangled: {
      const DisentangledOptions& options = layer.config().disentangled;
      const Tensor of_keys = options.content_to_position
                                 ? met_vectors(layer, parameters, HeadPart::kKeys, q.head)
                                 : Tensor(),
                   of_queries = options.position_to_content
                                    ? met_vectors(layer, parameters, HeadPart::kQueries, q.head)
                                    : Tensor();
      const std::string first = fmt::format("{} k_r[c]^T", q.name),
                        second = fmt::format("{} q_r[c]^T", q.name_of_keys);
      const std::string both = of_queries.size() == 0 ? first
                               : of_keys.size() == 0  ? second
                                                      : fmt::format("({} + {})", first, second);
      return matrix(fmt::format("{:.4g} {}, c of the distance", q.scale, both),
                    [&](int64_t i, int64_t j, int distance) {
                      const int column = disentangled_column(-distance, options);
                      float sum = 0;
                      for (int64_t n = 0; n < q.rows.cols; ++n) {
                        if (of_keys.size() != 0) sum += q.rows(i, n) * of_keys(column, n);
                        if (of_queries.size() != 0) sum += q.keys(j, n) * of_queries(column, n);
                      }
                      return q.scale * sum;
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

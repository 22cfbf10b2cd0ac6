// The same model with its heads in other bases: W_V R with R^T W_O, and W_Q R with R^-T W_K, biases turned too. Outputs stay, so
// whatever is said of heads must stay, too.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/models/model.h"
#include "multihead/nn/layer_weights.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh::test {

inline DoubleMatrix turn_identity(int64_t n) {
  DoubleMatrix found(n, n);
  for (int64_t i = 0; i < n; ++i) found(i, i) = 1;
  return found;
}

/// The product of rotations in the planes of numbers i and j.
inline DoubleMatrix turn_in_planes(int64_t n, const std::vector<std::pair<int64_t, int64_t>>& planes,
                                   Random& random) {
  DoubleMatrix found = turn_identity(n);
  for (const auto& [i, j] : planes) {
    const double angle = 1 + 2 * random.uniform();
    for (int64_t r = 0; r < n; ++r) {
      const double a = found(r, i), b = found(r, j);
      found(r, i) = a * std::cos(angle) - b * std::sin(angle);
      found(r, j) = a * std::sin(angle) + b * std::cos(angle);
    }
  }
  return found;
}

inline DoubleMatrix turn_anywhere(int64_t n, Random& random) {
  std::vector<std::pair<int64_t, int64_t>> planes;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) planes.emplace_back(i, j);
  }
  return turn_in_planes(n, planes, random);
}

/// Columns begin ... begin + size of rows of `a` become those times r.
inline void turn_columns(Tensor& a, int64_t begin, const DoubleMatrix& r) {
  for (int64_t i = 0; i < a.rows(); ++i) {
    std::vector<double> row(static_cast<size_t>(r.rows()));
    for (int64_t k = 0; k < r.rows(); ++k) row[static_cast<size_t>(k)] = static_cast<double>(a(i, begin + k));
    for (int64_t c = 0; c < r.cols(); ++c) {
      double sum = 0;
      for (int64_t k = 0; k < r.rows(); ++k) sum += row[static_cast<size_t>(k)] * r(k, c);
      a(i, begin + c) = static_cast<float>(sum);
    }
  }
}

/// Rows begin ... of `a` become r^T times those.
inline void turn_rows(Tensor& a, int64_t begin, const DoubleMatrix& r) {
  Tensor part(a.cols(), r.rows());
  for (int64_t i = 0; i < r.rows(); ++i) {
    for (int64_t c = 0; c < a.cols(); ++c) part(c, i) = a(begin + i, c);
  }
  turn_columns(part, 0, r);
  for (int64_t i = 0; i < r.rows(); ++i) {
    for (int64_t c = 0; c < a.cols(); ++c) a(begin + i, c) = part(c, i);
  }
}

/// What a head's queries may be multiplied with, and its keys: with rotary positions a rotation in each of their planes, with
/// norms of queries and keys nothing, else any matrix and its inverse transposed.
inline std::pair<DoubleMatrix, DoubleMatrix> turn_of_scores(const MultiHeadAttentionConfig& config,
                                                            Random& random) {
  const int64_t size = config.geometry.d_key;
  if (config.geometry.query_key_norm != QueryKeyNorm::kNone)
    return {turn_identity(size), turn_identity(size)};
  if (config.positions == Positions::kRotary) {
    std::vector<std::pair<int64_t, int64_t>> planes;
    const bool halves = config.rotary.pairs == RotaryPairs::kHalves;
    for (int64_t i = 0; i < size / 2; ++i)
      planes.push_back(halves ? std::pair{i, i + size / 2} : std::pair{2 * i, 2 * i + 1});
    const DoubleMatrix r = turn_in_planes(size, planes, random);
    return {r, r};
  }
  // Two rotations with stretches between them: R = A S B, R^-T = A S^-1 B.
  const DoubleMatrix a = turn_anywhere(size, random), b = turn_anywhere(size, random);
  DoubleMatrix stretched = a, shrunk = a;
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      const double stretch = std::exp2(static_cast<double>(j % 3) - 1);
      stretched(i, j) *= stretch, shrunk(i, j) /= stretch;
    }
  }
  return {product(stretched.view(), b.view()), product(shrunk.view(), b.view())};
}

/// Of heads that read the whole row and have W^Q and W^K of their own (Scores::kQueryKey); one R for each key head, and one for
/// each value head.
inline void turn_heads(Model& model, uint64_t seed) {
  Random random(seed);
  for (const auto& [name, heads, place] : model.attentions()) {
    MultiHeadAttention& attention = model.attention(name);
    LayerWeights layer = weights_of(attention, model.facts().d_model);
    const HeadGeometry& g = layer.geometry;
    MH_ASSERT(g.scores == Scores::kQueryKey && g.input.kind == HeadInput::Kind::kWholeRow &&
              g.weights == HeadWeights::kSoftmax && g.output == HeadOutput::kProjection);
    const auto turn = [&](const char* part, int64_t head, const DoubleMatrix& r) {
      for (const char* kind : {"w_", "b_"}) {
        const std::string parameter = std::string(kind) + part;
        if (layer.has(parameter)) turn_columns(layer.values.at(parameter), head * r.rows(), r);
      }
    };
    for (int k = 0; k < g.key_heads; ++k) {
      const auto [of_queries, of_keys] = turn_of_scores(attention.config(), random);
      const int share = heads / g.key_heads;
      for (int h = k * share; h < (k + 1) * share; ++h) turn("q", h, of_queries);
      turn("k", k, of_keys);
    }
    for (int v = 0; v < g.value_heads; ++v) {
      const DoubleMatrix r = turn_anywhere(g.d_value, random);
      turn("v", v, r);
      const int share = heads / g.value_heads;
      for (int h = v * share; h < (v + 1) * share; ++h) turn_rows(layer.values.at("w_o"), h * r.rows(), r);
    }
    put_weights(layer, attention);
  }
}

}  // namespace mh::test

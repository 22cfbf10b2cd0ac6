// A whole attention layer in double, word by word from its geometry: what the fused layer is checked against.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "multihead/base/ragged.h"
#include "multihead/kernels/mask.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh::test {

using D = BasicTensor<double>;
using Parameters = std::map<std::string, D>;  // "w_q", "b_o", ...

inline Parameters parameters_of(MultiHeadAttention& layer) {
  Parameters found;
  layer.visit(
      "", [&](const std::string& name, Parameter& p) { found[name.substr(1)] = in_double(p.value.view()); });
  return found;
}

inline D product(const D& a, const D& b) {
  D c(a.rows(), b.cols());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t n = 0; n < a.cols(); ++n) {
      for (int64_t j = 0; j < b.cols(); ++j) c(i, j) += a(i, n) * b(n, j);
    }
  }
  return c;
}

/// Adds parameter `name`, if the layer has it, to every row of columns [begin, begin + a.cols()).
inline void add_bias_of(const Parameters& p, const std::string& name, int64_t begin, D& a) {
  const auto found = p.find(name);
  if (found == p.end()) return;
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t c = 0; c < a.cols(); ++c) a(i, c) += found->second(0, begin + c);
  }
}

inline D columns_of(const D& a, int64_t begin, int64_t end) {
  D part(a.rows(), end - begin);
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t c = begin; c < end; ++c) part(i, c - begin) = a(i, c);
  }
  return part;
}

inline D rows_of(const D& a, int64_t begin, int64_t end) {
  D part(end - begin, a.cols());
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t c = 0; c < a.cols(); ++c) part(i - begin, c) = a(i, c);
  }
  return part;
}

/// Head `head` of projection `letter` ("q", "k", "v"), of `size` numbers: what the geometry's formula says of
/// rows x.
inline D projected(const HeadGeometry& g, int d_model, const Parameters& p, const D& x,
                   const std::string& letter, int head, int size) {
  const std::string bias = "b_" + letter;
  D rows = x;
  if (p.contains("w_before_" + letter)) rows = product(x, p.at("w_before_" + letter));
  const bool tied_keys = g.scores == Scores::kTied && letter == "k";
  const D& w = p.at("w_" + (tied_keys ? std::string("q") : letter));
  if (g.input.kind != HeadInput::Kind::kWholeRow) {
    const HeadColumns columns =
        g.input.kind == HeadInput::Kind::kColumns ? g.input.columns : slice_columns(g.heads, d_model);
    int64_t first = 0;
    if (!g.input.one_for_all) {
      for (int h = 0; h < head; ++h) first += static_cast<int64_t>(columns[static_cast<size_t>(h)].size());
    }
    D out(x.rows(), size);
    for (int64_t i = 0; i < x.rows(); ++i) {
      for (int64_t c = 0; c < size; ++c) {
        for (size_t n = 0; n < columns[static_cast<size_t>(head)].size(); ++n) {
          out(i, c) += rows(i, columns[static_cast<size_t>(head)][n]) * w(first + static_cast<int64_t>(n), c);
        }
      }
    }
    add_bias_of(p, bias, int64_t{head} * size, out);
    return out;
  }
  D out = product(rows, columns_of(w, int64_t{head} * size, (int64_t{head} + 1) * size));
  add_bias_of(p, tied_keys ? "b_q" : bias, int64_t{head} * size, out);
  return out;
}

struct QueryKey {
  D q, k;
};

inline QueryKey query_and_key(const HeadGeometry& g, int d_model, const Parameters& p, const D& x,
                              const D& memory, int head) {
  const int key_head = head * g.key_heads / g.heads;
  if (g.scores == Scores::kMerged) {
    D q = product(x, columns_of(p.at("w_qk"), int64_t{head} * d_model, (int64_t{head} + 1) * d_model));
    add_bias_of(p, "c_qk", int64_t{head} * d_model, q);
    return {q, memory};
  }
  if (g.scores == Scores::kCollaborative) {
    D q = product(x, p.at("w_q")), k = product(memory, p.at("w_k"));
    add_bias_of(p, "b_q", 0, q);
    add_bias_of(p, "b_k", 0, k);
    for (int64_t i = 0; i < q.rows(); ++i) {
      for (int64_t c = 0; c < q.cols(); ++c) q(i, c) *= p.at("mixing")(head, c);
    }
    return {q, k};
  }
  return {projected(g, d_model, p, x, "q", head, g.d_key),
          projected(g, d_model, p, memory, "k", key_head, g.d_key)};
}

/// What a self-attention does about positions.
struct Order {
  Positions positions = Positions::kNone;
  Sight sight = Sight::kBoth;
};

/// Rows of sequences, turned: numbers i and i + size / 2 are a pair whose angle is position * 10000^(-2i /
/// size).
inline D turned_by_position(const D& rows, const Ragged& ragged) {
  const int64_t half = rows.cols() / 2;
  D out(rows.rows(), rows.cols());
  for (int32_t s = 0; s < ragged.sequences(); ++s) {
    for (int32_t n = 0; n < ragged.length(s); ++n) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle =
            n * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rows.cols()));
        const int64_t row = ragged.begin(s) + n;
        const double a = rows(row, i), b = rows(row, i + half);
        out(row, i) = a * std::cos(angle) - b * std::sin(angle);
        out(row, i + half) = a * std::sin(angle) + b * std::cos(angle);
      }
    }
  }
  return out;
}

/// What order adds to the score of query row `row` of q, `distance` before (or after) the key. `map`: which
/// softmax.
inline double added_to_score(const HeadGeometry& g, const Order& order, const Parameters& p, int map,
                             const D& q, int64_t row, int distance) {
  if (order.positions == Positions::kAlibi)
    return -std::exp2(-8.0 * (map / maps_per_head(g) + 1) / g.heads) * std::abs(distance);
  if (order.positions == Positions::kT5) return p.at("distance_bias")(map, t5_bucket(distance, order.sight));
  if (order.positions != Positions::kShaw) return 0;
  double sum = 0;
  const int column = std::clamp(distance, -kShawClip, kShawClip) + kShawClip;
  for (int64_t c = 0; c < q.cols(); ++c) sum += q(row, c) * p.at("distance_keys")(c, column);
  return sum;
}

/// Each row at length 1, times `factor`.
inline D at_length(const D& rows, double factor) {
  D out(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    double squares = 0;
    for (int64_t c = 0; c < rows.cols(); ++c) squares += rows(i, c) * rows(i, c);
    for (int64_t c = 0; c < rows.cols(); ++c) out(i, c) = factor * rows(i, c) / std::sqrt(squares);
  }
  return out;
}

/// A number for each head, query and key of one sequence.
using Maps = std::vector<D>;

inline Maps mixed(const Maps& maps, const D& mixing) {
  Maps out;
  for (size_t g = 0; g < maps.size(); ++g) {
    D& sum = out.emplace_back(maps[0].rows(), maps[0].cols());
    for (size_t h = 0; h < maps.size(); ++h) {
      for (int64_t n = 0; n < sum.size(); ++n)
        sum.data()[n] += mixing(static_cast<int64_t>(h), static_cast<int64_t>(g)) * maps[h].data()[n];
    }
  }
  return out;
}

/// The softmax of each row; `first`: the row of the batch that row 0 is.
inline Maps softmax_of(const Maps& scores, const Mask& mask, int64_t first) {
  Maps out;
  for (const D& map : scores) {
    D& weights = out.emplace_back(map.rows(), map.cols());
    for (int64_t i = 0; i < map.rows(); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < map.cols(); ++j) {
        if (mask.allows(first + i, i, j, map.rows(), map.cols())) weights(i, j) = std::exp(map(i, j));
        sum += weights(i, j);
      }
      for (int64_t j = 0; j < map.cols() && sum > 0; ++j) weights(i, j) /= sum;
    }
  }
  return out;
}

inline double lambda_in_double(const Parameters& p, double start) {
  const D& vectors = p.at("lambda");
  double first = 0, second = 0;
  for (int64_t c = 0; c < vectors.cols(); ++c) {
    first += vectors(0, c) * vectors(1, c);
    second += vectors(2, c) * vectors(3, c);
  }
  return std::exp(first) - std::exp(second) + start;
}

/// lambda_init of Ye et al.
inline double lambda_start(int layer) {
  return 0.8 - 0.6 * std::exp(-0.3 * layer);
}

/// What the heads weigh their values with, from the scores of all softmaxes.
inline Maps weights_in_double(const HeadGeometry& g, const Parameters& p, Maps scores, const Mask& mask,
                              int64_t first, int layer) {
  const bool talking = g.weights == HeadWeights::kTalking;
  if (talking) scores = mixed(scores, p.at("mixing_of_scores"));
  Maps weights = softmax_of(scores, mask, first);
  if (talking) return mixed(weights, p.at("mixing_of_weights"));
  if (g.weights == HeadWeights::kSoftmax) return weights;
  const double lambda = lambda_in_double(p, lambda_start(layer));
  Maps differences;
  for (size_t h = 0; h < weights.size(); h += 2) {
    D& map = differences.emplace_back(weights[h].rows(), weights[h].cols());
    for (int64_t n = 0; n < map.size(); ++n)
      map.data()[n] = weights[h].data()[n] - lambda * weights[h + 1].data()[n];
  }
  return differences;
}

/// (1 - lambda_init) gain * x / rms(x), of one head's numbers of every row.
inline void norm_of_differential_head(const Parameters& p, double start, D& rows) {
  for (int64_t i = 0; i < rows.rows(); ++i) {
    double squares = 0;
    for (int64_t c = 0; c < rows.cols(); ++c) squares += rows(i, c) * rows(i, c);
    const double rms = std::sqrt(squares / static_cast<double>(rows.cols()) + 1e-5);
    for (int64_t c = 0; c < rows.cols(); ++c) rows(i, c) *= (1 - start) * p.at("head_norm")(0, c) / rms;
  }
}

/// Which layer of a stack the tests' attentions say they are.
inline constexpr int kLayer = 1;

/// Concat(heads) W^O + b^O for rows x that attend to `memory`; sequences by offsets. geometry: completed.
inline D layer_in_double(const HeadGeometry& g, int d_model, const Parameters& p, const D& x,
                         const Ragged& queries, const D& memory, const Ragged& keys, const Mask& mask,
                         const Order& order = {}) {
  std::vector<QueryKey> pairs;
  for (int map = 0; map < g.heads * maps_per_head(g); ++map) {
    QueryKey qk = query_and_key(g, d_model, p, x, memory, map);
    if (g.query_key_norm == QueryKeyNorm::kL2) {
      qk = {at_length(qk.q, p.at("score_factor")(0, 0)), at_length(qk.k, 1)};
    } else {
      for (int64_t n = 0; n < qk.q.size(); ++n) qk.q.data()[n] *= *g.scale;
    }
    if (order.positions == Positions::kRotary) {
      qk = {turned_by_position(qk.q, queries), turned_by_position(qk.k, keys)};
    }
    pairs.push_back(std::move(qk));
  }
  D together(x.rows(), int64_t{g.heads} * g.d_value);
  for (int32_t s = 0; s < queries.sequences(); ++s) {
    Maps scores;
    for (const QueryKey& qk : pairs) {
      const auto map = static_cast<int>(scores.size());
      D& of = scores.emplace_back(queries.length(s), keys.length(s));
      for (int32_t i = 0; i < queries.length(s); ++i) {
        const int64_t row = queries.begin(s) + i;
        for (int32_t j = 0; j < keys.length(s); ++j) {
          for (int64_t c = 0; c < qk.q.cols(); ++c) of(i, j) += qk.q(row, c) * qk.k(keys.begin(s) + j, c);
          const int distance = j - (i + keys.length(s) - queries.length(s));
          of(i, j) += added_to_score(g, order, p, map, qk.q, row, distance);
        }
      }
    }
    const Maps weights = weights_in_double(g, p, scores, mask, queries.begin(s), kLayer);
    for (int head = 0; head < g.heads; ++head) {
      const D v = projected(g, d_model, p, memory, "v", head * g.value_heads / g.heads, g.d_value);
      D out = product(weights[static_cast<size_t>(head)], rows_of(v, keys.begin(s), keys.end(s)));
      if (g.weights == HeadWeights::kDifferential) norm_of_differential_head(p, lambda_start(kLayer), out);
      for (int64_t i = 0; i < out.rows(); ++i) {
        for (int64_t c = 0; c < out.cols(); ++c)
          together(queries.begin(s) + i, int64_t{head} * g.d_value + c) = out(i, c);
      }
    }
  }
  if (g.output == HeadOutput::kConcatenation) return together;
  D out = product(together, p.at("w_o"));
  add_bias_of(p, "b_o", 0, out);
  return out;
}

}  // namespace mh::test

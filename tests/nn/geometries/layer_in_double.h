// A whole attention layer in double, written as its formula; the fused layer is checked against it. The
// test file of each geometry has its own part (oracle.h).
#pragma once

#include "tests/nn/geometries/oracle.h"

namespace mh::test {

/// What a self-attention does about positions.
struct Order {
  Positions positions = Positions::kNone;
  AttentionDirection direction = AttentionDirection::kBidirectional;
  DisentangledOptions disentangled = {};
};

/// R W + b of a head, of disentangled positions: [2 span, d_key]. letter: of the keys', or queries'.
inline D vectors_of_distances(const HeadGeometry& g, const Order& order, const Parameters& p, char letter,
                              int head) {
  D r = p.at("distance_vectors");
  for (int64_t i = 0; order.disentangled.normed && i < r.rows(); ++i) {
    double mean = 0, square = 0;
    for (int64_t c = 0; c < r.cols(); ++c) mean += r(i, c) / static_cast<double>(r.cols());
    for (int64_t c = 0; c < r.cols(); ++c)
      square += (r(i, c) - mean) * (r(i, c) - mean) / static_cast<double>(r.cols());
    for (int64_t c = 0; c < r.cols(); ++c)
      r(i, c) = p.at("distance_norm.gain")(0, c) * (r(i, c) - mean) / std::sqrt(square + 1e-6) +
                p.at("distance_norm.bias")(0, c);
  }
  const std::string own = order.disentangled.shared_projections ? "" : "distance_";
  const D all = product(r, p.at(own + "w_" + letter));
  D found(r.rows(), g.d_key);
  for (int64_t i = 0; i < found.rows(); ++i) {
    for (int64_t c = 0; c < found.cols(); ++c)
      found(i, c) = all(i, head * g.d_key + c) + p.at(own + "b_" + letter)(0, head * g.d_key + c);
  }
  return found;
}

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

/// What order adds to the score of query row `row` of q, `distance` before (or after) row `key_row` of k. `map`: which
/// softmax.
inline double added_to_score(const HeadGeometry& g, const Order& order, const Parameters& p, int map,
                             const D& q, int64_t row, const D& k, int64_t key_row, int distance) {
  if (order.positions == Positions::kAlibi)
    return -std::exp2(-8.0 * (map / weight_oracle(g).softmaxes() + 1) / g.heads) * std::abs(distance);
  if (order.positions == Positions::kT5)
    return p.at("distance_bias")(map, t5_bucket(distance, order.direction));
  if (order.positions == Positions::kDisentangled) {
    const int64_t column = disentangled_column(-distance, order.disentangled);
    double both = 0;
    const auto add = [&](bool wanted, const D& rows, int64_t of, char letter) {
      if (!wanted) return;
      const D vectors = vectors_of_distances(g, order, p, letter, map);
      for (int64_t c = 0; c < rows.cols(); ++c) both += rows(of, c) * vectors(column, c);
    };
    // Here queries are scaled already, and keys are not.
    add(order.disentangled.content_to_position, q, row, 'k');
    const double scale = *g.scale;
    D scaled = k;
    for (int64_t i = 0; i < scaled.size(); ++i) scaled.data()[i] *= scale;
    add(order.disentangled.position_to_content, scaled, key_row, 'q');
    return both;
  }
  if (order.positions != Positions::kShaw) return 0;
  double sum = 0;
  const int column = std::clamp(distance, -kShawClip, kShawClip) + kShawClip;
  for (int64_t c = 0; c < q.cols(); ++c) sum += q(row, c) * p.at("distance_keys")(c, column);
  return sum;
}

/// Concat(heads) W^O + b^O for rows x that attend to `memory`; sequences by offsets. geometry: completed.
inline D layer_in_double(const HeadGeometry& g, int d_model, const Parameters& p, const D& x,
                         const Ragged& queries, const D& memory, const Ragged& keys, const Mask& mask,
                         const Order& order = {}) {
  struct QueryKey {
    D q, k;
  };
  const Layer layer{g, d_model, p};
  const HeadOracle& heads = head_oracle(g);
  const WeightOracle& weighing = weight_oracle(g);
  const QueryKeyOracle& norm = query_key_oracle(g);
  std::vector<QueryKey> pairs;
  for (int map = 0; map < g.heads * weighing.softmaxes(); ++map) {
    QueryKey qk{norm.query(layer, heads.query(layer, x, map)),
                norm.key(layer, heads.key(layer, memory, map))};
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
          if (g.soft_cap) of(i, j) = double{*g.soft_cap} * std::tanh(of(i, j) / double{*g.soft_cap});
          const int distance = j - (i + keys.length(s) - queries.length(s));
          of(i, j) += added_to_score(g, order, p, map, qk.q, row, qk.k, keys.begin(s) + j, distance);
        }
      }
    }
    const Maps weights = weighing.weights(p, std::move(scores), mask, queries.begin(s));
    for (int head = 0; head < g.heads; ++head) {
      const D v = heads.value(layer, memory, head * g.value_heads / g.heads);
      D out = product(weights[static_cast<size_t>(head)], rows_of(v, keys.begin(s), keys.end(s)));
      weighing.finish(p, out);
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

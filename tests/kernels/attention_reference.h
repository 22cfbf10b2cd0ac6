// Attention in double and in plain loops, to check the fused kernel against. Its backward pass is checked
// against central differences in attention_test.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "multihead/base/stored_matrix.h"
#include "multihead/kernels/attention.h"

namespace mh::reference {

struct Attention {
  std::vector<double> output;   // [Nq, H * d_value]
  std::vector<double> ungated;  // the same before the gate
  std::vector<double> lse;      // [Nq, H]
  std::vector<double> weights;  // as AttentionOutputs::weights
  double largest = 0;           // the largest magnitude that was summed, for the tolerance
  // As AttentionStatistics.
  std::vector<double> highest, entropy, expected_position, expected_distance, mass;
};

struct Gradients {
  std::vector<double> d_q, d_k, d_v;
  std::vector<double> d_gate;                                           // [S, H]
  std::vector<double> slopes, by_distance, elements, by_query, by_key;  // of the bias
  double largest = 0;
};

/// The inputs in double, so that differences can be taken.
struct Values {
  std::vector<double> q, k, v;
  std::vector<double> gate;  // [S, H]
  std::vector<double> slopes = {}, by_distance = {}, elements = {}, by_query = {}, by_key = {};
};

inline std::vector<double> dense(ConstMatrixView view) {
  std::vector<double> result;
  for (int64_t i = 0; i < view.rows; ++i) {
    for (int64_t j = 0; j < view.cols; ++j) result.push_back(static_cast<double>(view(i, j)));
  }
  return result;
}

inline std::vector<double> dense(ConstHalfView view) {
  std::vector<double> result;
  for (int64_t i = 0; i < view.rows; ++i) {
    for (int64_t j = 0; j < view.cols; ++j) result.push_back(static_cast<double>(from_bfloat16(view(i, j))));
  }
  return result;
}

inline Values values_of(const AttentionInputs& in) {
  Values values{dense(in.q),
                in.halves() ? dense(in.half_k) : dense(in.k),
                in.halves() ? dense(in.half_v) : dense(in.v),
                {}};
  for (size_t s = 0; s + 1 < in.query_offsets.size(); ++s) {
    for (int h = 0; h < in.heads; ++h) values.gate.push_back(static_cast<double>(in.gate_of(s, h)));
  }
  const auto doubles = [](std::span<const float> x) { return std::vector<double>(x.begin(), x.end()); };
  values.slopes = doubles(in.bias.slopes);
  values.by_distance = doubles(in.bias.by_distance);
  values.elements = doubles(in.bias.elements);
  values.by_query = dense(in.bias.by_query);
  values.by_key = dense(in.bias.by_key);
  return values;
}

/// What a query sees: pairs of key number and weight factor of the dropout.
struct Seen {
  int64_t key, row;  // in the sequence; in k and v
  double factor;
  int64_t distance;
};

template <class Visit>
void for_each_query(const AttentionInputs& in, Visit visit) {
  int64_t weights = 0;
  std::vector<Seen> seen;
  for (size_t s = 0; s + 1 < in.query_offsets.size(); ++s) {
    const int64_t row = in.query_offsets[s], queries = in.query_offsets[s + 1] - row;
    const int64_t first = in.key_offsets[s], keys = in.key_offsets[s + 1] - first;
    for (int64_t h = 0; h < in.heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        seen.clear();
        for (int64_t j = 0; j < keys; ++j) {
          if (!in.mask.allows(row + i, i, j, queries, keys)) continue;
          double factor = 1;
          if (in.dropout.active()) {
            const uint32_t bits = weight_bits(in.dropout.stream, in.dropout.sentences[s], h, i, j);
            factor = bits < in.dropout.threshold() ? 0 : 65536.0 / (65536.0 - in.dropout.threshold());
          }
          const auto at = static_cast<size_t>(first + j);
          seen.push_back({j, in.key_rows.empty() ? first + j : int64_t{in.key_rows[at]}, factor,
                          j - (i + keys - queries)});
        }
        visit(row + i, h, seen, weights + (h * queries + i) * keys);
      }
    }
    weights += in.heads * queries * keys;
  }
}

/// The sequence of a query row.
inline size_t sequence_of(const AttentionInputs& in, int64_t row) {
  const auto next = std::upper_bound(in.query_offsets.begin(), in.query_offsets.end(), row);
  return static_cast<size_t>(next - in.query_offsets.begin()) - 1;
}

/// Gradients of gates [S, H] as `rows` rows: all of them, or one that is their sum.
inline std::vector<double> gates_in_rows(const std::vector<double>& each, int64_t heads, int64_t rows) {
  if (rows != 1) return each;
  std::vector<double> sums(static_cast<size_t>(heads), 0.0);
  for (size_t i = 0; i < each.size(); ++i) sums[i % sums.size()] += each[i];
  return sums;
}

/// Where a bias has its numbers for a score, or -1.
struct BiasPlaces {
  int64_t slope = -1, by_distance = -1, element = -1, by_query = -1, by_key = -1;
};
inline BiasPlaces bias_places(const AttentionInputs& in, int64_t row, int64_t h, const Seen& key,
                              int64_t weights) {
  const auto clipped = [&](int64_t k) { return std::clamp(key.distance, -k, k) + k; };
  BiasPlaces places;
  if (!in.bias.slopes.empty()) places.slope = h;
  if (!in.bias.by_distance.empty()) {
    int64_t column = clipped(in.bias.distance_clip);
    if (!in.bias.buckets.empty()) column = in.bias.buckets[static_cast<size_t>(column)];
    places.by_distance = h * in.bias.distance_columns + column;
  }
  if (!in.bias.elements.empty()) places.element = weights + key.key;
  int64_t column = clipped(in.bias.vector_clip);
  if (!in.bias.vector_buckets.empty()) column = in.bias.vector_buckets[static_cast<size_t>(column)];
  const int64_t columns =
      in.bias.vector_buckets.empty() ? 2 * in.bias.vector_clip + 1 : in.bias.vector_columns;
  if (in.bias.by_query.cols != 0) places.by_query = (row * in.heads + h) * columns + column;
  if (in.bias.by_key.cols != 0) {
    const int64_t key_row = in.key_offsets[sequence_of(in, row)] + key.key;
    places.by_key = (key_row * in.heads + h) * columns + column;
  }
  return places;
}

/// s_ij for every key seen; slopes: what a cap does to their gradients.
inline std::vector<double> scores(const AttentionInputs& in, const Values& x, int64_t row, int64_t h,
                                  const std::vector<Seen>& seen, int64_t weights, double* largest = nullptr,
                                  std::vector<double>* slopes = nullptr) {
  std::vector<double> s;
  const int64_t g = h * in.key_heads / in.heads;
  for (const Seen& key : seen) {
    double sum = 0;
    for (int64_t c = 0; c < in.d_key; ++c) {
      const double term = x.q[static_cast<size_t>((row * in.heads + h) * in.d_key + c)] *
                          x.k[static_cast<size_t>((key.row * in.key_heads + g) * in.d_key + c)];
      sum += term;
      if (largest) *largest = std::max(*largest, std::abs(term * static_cast<double>(in.scale)));
    }
    sum *= static_cast<double>(in.scale);
    if (in.soft_cap) sum = double{*in.soft_cap} * std::tanh(sum / double{*in.soft_cap});
    if (slopes) slopes->push_back(in.soft_cap ? 1 - std::pow(sum / double{*in.soft_cap}, 2) : 1.0);
    const BiasPlaces at = bias_places(in, row, h, key, weights);
    const auto add = [&](double term) {
      sum += term;
      if (largest) *largest = std::max(*largest, std::abs(term));
    };
    if (at.slope >= 0)
      add(-x.slopes[static_cast<size_t>(at.slope)] * static_cast<double>(std::abs(key.distance)));
    if (at.by_distance >= 0) add(x.by_distance[static_cast<size_t>(at.by_distance)]);
    if (at.element >= 0) add(x.elements[static_cast<size_t>(at.element)]);
    if (at.by_query >= 0) add(x.by_query[static_cast<size_t>(at.by_query)]);
    if (at.by_key >= 0) add(x.by_key[static_cast<size_t>(at.by_key)]);
    s.push_back(sum);
  }
  return s;
}

inline Attention attention(const AttentionInputs& in, const Values& x,
                           std::span<const int32_t> distances = {}) {
  Attention result;
  result.output.assign(static_cast<size_t>(in.q.rows * in.heads * in.d_value), 0);
  result.ungated = result.output;
  result.lse.assign(static_cast<size_t>(in.q.rows * in.heads), -std::numeric_limits<double>::infinity());
  result.weights.assign(static_cast<size_t>(attention_weights_size(in)), 0);
  result.highest = result.lse;
  result.entropy.assign(result.lse.size(), 0);
  result.expected_position = result.expected_distance = result.entropy;
  result.mass.assign(result.lse.size() * distances.size(), 0);
  for_each_query(in, [&](int64_t row, int64_t h, const std::vector<Seen>& seen, int64_t weights) {
    if (seen.empty()) return;
    const auto s = scores(in, x, row, h, seen, weights, &result.largest);
    const double most = *std::max_element(s.begin(), s.end());
    double sum = 0;
    for (const double score : s) sum += std::exp(score - most);
    result.lse[static_cast<size_t>(row * in.heads + h)] = most + std::log(sum);
    const int64_t u = h * in.value_heads / in.heads;
    for (size_t n = 0; n < seen.size(); ++n) {
      const double p = std::exp(s[n] - most) / sum;
      const auto at = static_cast<size_t>(row * in.heads + h);
      result.highest[at] = most;
      result.entropy[at] -= p > 0 ? p * std::log(p) : 0;
      result.expected_position[at] += p * static_cast<double>(seen[n].key);
      result.expected_distance[at] += p * static_cast<double>(std::abs(seen[n].distance));
      for (size_t m = 0; m < distances.size(); ++m) {
        if (seen[n].distance == distances[m]) result.mass[at * distances.size() + m] = p;
      }
      result.weights[static_cast<size_t>(weights + seen[n].key)] = p;
      for (int64_t c = 0; c < in.d_value; ++c) {
        const double v = x.v[static_cast<size_t>((seen[n].row * in.value_heads + u) * in.d_value + c)];
        result.ungated[static_cast<size_t>((row * in.heads + h) * in.d_value + c)] += p * seen[n].factor * v;
        result.largest = std::max(result.largest, std::abs(v));
      }
    }
  });
  for (size_t i = 0; i < result.output.size(); ++i) {
    const auto heads = static_cast<size_t>(in.heads), of_row = i / static_cast<size_t>(in.d_value);
    const size_t s = sequence_of(in, static_cast<int64_t>(of_row / heads));
    result.output[i] = x.gate[s * heads + of_row % heads] * result.ungated[i];
  }
  return result;
}

inline Gradients attention_gradients(const AttentionInputs& in, const Values& x,
                                     const std::vector<double>& d_output) {
  const Attention forward = attention(in, x);
  Gradients g{std::vector<double>(x.q.size()),        std::vector<double>(x.k.size()),
              std::vector<double>(x.v.size()),        std::vector<double>(x.gate.size()),
              std::vector<double>(x.slopes.size()),   std::vector<double>(x.by_distance.size()),
              std::vector<double>(x.elements.size()), std::vector<double>(x.by_query.size()),
              std::vector<double>(x.by_key.size()),   forward.largest};
  const auto add = [&g](std::vector<double>& to, int64_t at, double term) {
    to[static_cast<size_t>(at)] += term;
    g.largest = std::max(g.largest, std::abs(term));
  };
  for_each_query(in, [&](int64_t row, int64_t h, const std::vector<Seen>& seen, int64_t weights) {
    const int64_t of_gate = static_cast<int64_t>(sequence_of(in, row)) * in.heads + h;
    const double gate = x.gate[static_cast<size_t>(of_gate)];
    const int64_t key_head = h * in.key_heads / in.heads, value_head = h * in.value_heads / in.heads;
    const int64_t o = (row * in.heads + h) * in.d_value;
    double delta = 0;  // d_output . ungated output
    for (int64_t c = 0; c < in.d_value; ++c) {
      delta += d_output[static_cast<size_t>(o + c)] * forward.ungated[static_cast<size_t>(o + c)];
    }
    add(g.d_gate, of_gate, delta);
    std::vector<double> slopes;
    scores(in, x, row, h, seen, weights, nullptr, &slopes);
    for (size_t n = 0; n < seen.size(); ++n) {
      const Seen& key = seen[n];
      const double p = forward.weights[static_cast<size_t>(weights + key.key)];
      const int64_t v = (key.row * in.value_heads + value_head) * in.d_value;
      const int64_t k = (key.row * in.key_heads + key_head) * in.d_key;
      double dp = 0;
      for (int64_t c = 0; c < in.d_value; ++c) {
        const double d_o = d_output[static_cast<size_t>(o + c)];
        dp += key.factor * d_o * x.v[static_cast<size_t>(v + c)];
        add(g.d_v, v + c, gate * p * key.factor * d_o);
      }
      const double d_score = gate * p * (dp - delta);
      const BiasPlaces at = bias_places(in, row, h, key, weights);
      if (at.slope >= 0) add(g.slopes, at.slope, -d_score * static_cast<double>(std::abs(key.distance)));
      if (at.by_distance >= 0) add(g.by_distance, at.by_distance, d_score);
      if (at.element >= 0) add(g.elements, at.element, d_score);
      if (at.by_query >= 0) add(g.by_query, at.by_query, d_score);
      if (at.by_key >= 0) add(g.by_key, at.by_key, d_score);
      const double ds = static_cast<double>(in.scale) * d_score * slopes[n];
      for (int64_t c = 0; c < in.d_key; ++c) {
        const int64_t q = (row * in.heads + h) * in.d_key + c;
        add(g.d_q, q, ds * x.k[static_cast<size_t>(k + c)]);
        add(g.d_k, k + c, ds * x.q[static_cast<size_t>(q)]);
      }
    }
  });
  return g;
}

}  // namespace mh::reference

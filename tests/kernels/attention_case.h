// One attention problem with random contents, for the tests: it owns what AttentionInputs points to.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "attention_reference.h"
#include "multihead/base/ragged.h"
#include "multihead/base/random.h"
#include "multihead/kernels/attention.h"

namespace mh {

enum class MaskChoice { kNone, kCausal, kCausalTopLeft, kWindow, kDense };

/// Which biases there are.
struct BiasChoice {
  bool slopes = false, by_distance = false, buckets = false, elements = false, by_query = false,
       by_key = false;
};

enum class GateChoice { kNone, kOfAll, kOfEach };  // sequence

struct AttentionCase {
  std::vector<int32_t> queries{5}, keys{7};
  int heads = 2, key_heads = 2, value_heads = 2;
  int d_key = 8, d_value = 8;
  MaskChoice mask = MaskChoice::kNone;
  float rate = 0;
  std::optional<float> soft_cap = {};
  GateChoice gates = GateChoice::kNone;
  bool by_rows = false;
  int64_t padding = 0;  // numbers between the rows
  BiasChoice bias = {};
  uint64_t seed = 1;
};

class AttentionProblem {
 public:
  explicit AttentionProblem(const AttentionCase& c) : random_(c.seed) {
    query_ragged_ = Ragged::from_lengths(c.queries);
    key_ragged_ = Ragged::from_lengths(c.keys);
    const int64_t nq = query_ragged_.rows(), nk = key_ragged_.rows();
    const int64_t stored = c.by_rows ? nk + 3 : nk;
    in.q = matrix(q_, nq, int64_t{c.heads} * c.d_key, c.padding);
    in.k = matrix(k_, stored, int64_t{c.key_heads} * c.d_key, c.padding);
    in.v = matrix(v_, stored, int64_t{c.value_heads} * c.d_value, c.padding);
    in.heads = c.heads;
    in.key_heads = c.key_heads;
    in.value_heads = c.value_heads;
    in.d_key = c.d_key;
    in.d_value = c.d_value;
    in.query_offsets = query_ragged_.offsets();
    in.key_offsets = key_ragged_.offsets();
    in.scale = attention_scale(c.d_key) * 1.5f;
    in.soft_cap = c.soft_cap;
    for (int64_t j = 0; c.by_rows && j < nk; ++j) {
      rows_.push_back(static_cast<int32_t>(random_.below(static_cast<uint32_t>(stored))));
    }
    in.key_rows = rows_;
    const auto sequences = static_cast<int64_t>(c.queries.size());
    if (c.gates != GateChoice::kNone) {
      const int64_t of_gates = c.gates == GateChoice::kOfAll ? 1 : sequences;
      for (int64_t i = 0; i < of_gates * c.heads; ++i)
        gate_.push_back(i % 3 == 1 ? 0.0f : 0.5f + static_cast<float>((i + i / c.heads) % c.heads));
      in.gate = {gate_.data(), of_gates, c.heads};
    }
    if (c.mask == MaskChoice::kCausal) in.mask = Mask::causal();
    if (c.mask == MaskChoice::kCausalTopLeft) in.mask = Mask::causal_top_left();
    if (c.mask == MaskChoice::kWindow) in.mask = Mask::window(3, 1);
    if (c.mask == MaskChoice::kDense) {
      const int64_t words = key_ragged_.longest() / 64 + 1;
      for (int64_t i = 0; i < nq * words; ++i)
        bits_.push_back((uint64_t{random_.bits()} << 32) | random_.bits());
      if (nq > 2) std::fill_n(bits_.begin() + words, words, 0);  // a row that sees nothing
      if (!bits_.empty()) in.mask = Mask::dense({bits_.data(), words});
    }
    for (size_t s = 0; s < c.queries.size(); ++s) sentences_.push_back(static_cast<int64_t>(s * s) + 3);
    in.dropout.rate = c.rate;
    in.dropout.stream = dropout_stream(5, 7, 11);
    in.dropout.offsets = in.query_offsets;
    in.dropout.sentences = sentences_;
    add_bias(c);
    output = blank(output_, nq, int64_t{c.heads} * c.d_value, c.padding);
    lse.assign(static_cast<size_t>(nq * c.heads), 77.0f);
    weights.assign(static_cast<size_t>(attention_weights_size(in)), 77.0f);
    d_output = matrix(d_output_, nq, int64_t{c.heads} * c.d_value, c.padding);
    d_q = blank(d_q_, nq, in.q.cols, c.padding);
    d_k = blank(d_k_, stored, in.k.cols, c.padding);
    d_v = blank(d_v_, stored, in.v.cols, c.padding);
    const int64_t of_d_gate = c.heads % 2 == 0 ? sequences : 1;
    d_gate.assign(static_cast<size_t>(of_d_gate * c.heads), 77.0f);
    d_gate_view = {d_gate.data(), of_d_gate, c.heads};
  }
  AttentionProblem(const AttentionProblem&) = delete;
  AttentionProblem& operator=(const AttentionProblem&) = delete;

  void forward(bool with_weights = true) {
    attention_forward(in, {output, lse.data(), with_weights ? weights.data() : nullptr, statistics});
  }
  void backward() {
    attention_backward(in, {output, lse.data(), d_output, d_q, d_k, d_v, d_gate_view, d_bias});
  }
  /// All statistics, with the weights at these distances.
  void want_statistics() {
    for (auto* data : {&highest, &entropy, &expected_position, &expected_distance})
      data->assign(lse.size(), 77.0f);
    mass.assign(lse.size() * kDistances.size(), 77.0f);
    statistics = {highest.data(),           entropy.data(), expected_position.data(),
                  expected_distance.data(), kDistances,     mass.data()};
  }
  static constexpr std::array<int32_t, 4> kDistances{0, -1, 2, -130};

  AttentionInputs in;
  MatrixView output, d_output, d_q, d_k, d_v, d_gate_view;
  std::vector<float> lse, weights, d_gate;
  AttentionStatistics statistics;
  std::vector<float> highest, entropy, expected_position, expected_distance, mass;
  AttentionBiasGradients d_bias;
  std::vector<float> d_slopes, d_by_distance, d_elements;
  MatrixView q() { return {q_.data(), in.q.rows, in.q.cols, in.q.stride}; }
  MatrixView k() { return {k_.data(), in.k.rows, in.k.cols, in.k.stride}; }
  MatrixView v() { return {v_.data(), in.v.rows, in.v.cols, in.v.stride}; }

 private:
  void add_bias(const AttentionCase& c) {
    const auto heads = static_cast<size_t>(c.heads);
    const auto fill = [&](std::vector<float>& data, std::vector<float>& gradient, size_t size) {
      data.resize(size);
      for (float& x : data) x = static_cast<float>(random_.normal());
      gradient.assign(size, 77.0f);
      return std::span<const float>(data);
    };
    AttentionBias& bias = in.bias;
    if (c.bias.slopes) {
      bias.slopes = fill(slopes_, d_slopes, heads);
      for (float& slope : slopes_) slope *= 0.1f;
      d_bias.slopes = d_slopes.data();
    }
    if (c.bias.by_distance) {
      bias.distance_clip = 19;
      bias.distance_columns = c.bias.buckets ? 7 : 39;
      if (c.bias.buckets) {
        for (int i = 0; i < 39; ++i) buckets_.push_back(i < 20 ? i / 5 : 3 + (i - 20) / 5);
        bias.buckets = buckets_;
      }
      bias.by_distance =
          fill(by_distance_, d_by_distance, heads * static_cast<size_t>(bias.distance_columns));
      d_bias.by_distance = d_by_distance.data();
    }
    if (c.bias.elements) {
      bias.elements = fill(elements_, d_elements, static_cast<size_t>(attention_weights_size(in)));
      d_bias.elements = d_elements.data();
    }
    bias.vector_clip = 5;
    if (c.bias.buckets && (c.bias.by_query || c.bias.by_key)) {
      vector_buckets_ = {6, 0, 0, 1, 2, 5, 3, 3, 4, 4, 1};
      bias.vector_buckets = vector_buckets_;
      bias.vector_columns = 7;
    }
    const int64_t columns = c.heads * bias.columns_of_vectors();
    if (c.bias.by_query) {
      bias.by_query = matrix(by_query_, in.q.rows, columns, c.padding);
      d_bias.by_query = blank(d_by_query_, in.q.rows, columns, c.padding);
    }
    if (c.bias.by_key) {
      bias.by_key = matrix(by_key_, in.key_offsets.back(), columns, c.padding);
      d_bias.by_key = blank(d_by_key_, in.key_offsets.back(), columns, c.padding);
    }
  }
  MatrixView matrix(std::vector<float>& data, int64_t rows, int64_t cols, int64_t padding) {
    const MatrixView view = blank(data, rows, cols, padding);
    for (float& x : data) x = static_cast<float>(random_.normal());
    return view;
  }
  static MatrixView blank(std::vector<float>& data, int64_t rows, int64_t cols, int64_t padding) {
    data.assign(static_cast<size_t>(rows * (cols + padding)) + 1, 77.0f);
    return {data.data(), rows, cols, cols + padding};
  }

  Random random_;
  Ragged query_ragged_, key_ragged_;
  std::vector<float> q_, k_, v_, output_, d_output_, d_q_, d_k_, d_v_, gate_;
  std::vector<float> slopes_, by_distance_, elements_, by_query_, d_by_query_, by_key_, d_by_key_;
  std::vector<int32_t> rows_, buckets_, vector_buckets_;
  std::vector<uint64_t> bits_;
  std::vector<int64_t> sentences_;
};

/// The same sums in float, one after the other: how far a careless float program lies from the truth. The
/// design's tolerance is twice that error plus a few roundings of the largest number summed.
inline double tolerance(double largest, int64_t terms) {
  return (8 + 2 * std::sqrt(static_cast<double>(terms))) * 0x1p-24 * largest;
}

inline double worst(const std::vector<double>& want, ConstMatrixView got) {
  double most = 0;
  for (int64_t i = 0; i < got.rows; ++i) {
    for (int64_t j = 0; j < got.cols; ++j) {
      const double error =
          std::abs(static_cast<double>(got(i, j)) - want[static_cast<size_t>(i * got.cols + j)]);
      if (!(error <= most)) most = error;  // a NaN is the worst and stays
    }
  }
  return most;
}

}  // namespace mh

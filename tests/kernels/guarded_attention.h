// Inputs and outputs of attention in memory of exactly their size, each in front of a page that must not be
// touched, with NaN in every place that must not be read.
#pragma once

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "guarded.h"
#include "multihead/base/ragged.h"
#include "multihead/base/random.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/kernels/attention.h"

namespace mh {

/// What a problem is like; contents are random.
struct AttentionDescription {
  std::vector<int32_t> queries = {}, keys = {};  // lengths of the sequences
  int heads = 1, key_heads = 1, value_heads = 1;
  int d_key = 8, d_value = 8;
  int64_t stored = 0;   // 0, or rows of k and v that key_rows choose from
  bool halves = false;  // keys and values are bfloat16
  int64_t q_padding = 0, k_padding = 0, v_padding = 0, output_padding = 0;
  float scale = 1;
  float soft_cap = 0;  // 0: none
  Mask mask = Mask::none();
  std::string mask_name = "none";
  int density = -1;  // 0 and up: a dense mask instead, with one bit of 2^density
  float rate = 0;
  bool sentences = true;
  std::vector<float> gate = {};  // [1, heads] or [sequences, heads]
  bool slopes = false, by_distance = false, elements = false, by_query = false, by_key = false;  // biases
  int buckets = 0;                                 // of by_distance, 0: none
  int clip = 7;                                    // of the distances
  bool lse = true, weights = true, d_gate = true;  // wanted results
  bool d_gate_of_each = false;                     // sequence
  bool statistics = false, d_bias = true;
  bool poison = false;  // NaN in the keys, values and queries that take no part
  uint64_t seed = 1;
};

class GuardedAttention {
 public:
  explicit GuardedAttention(const AttentionDescription& d)
      : random_(d.seed), gate_(d.gate), mask_name_(d.mask_name) {
    in.heads = d.heads;
    in.key_heads = d.key_heads;
    in.value_heads = d.value_heads;
    in.d_key = d.d_key;
    in.d_value = d.d_value;
    in.scale = d.scale;
    if (d.soft_cap != 0) in.soft_cap = d.soft_cap;
    if (!gate_.empty()) in.gate = {gate_.data(), static_cast<int64_t>(gate_.size()) / d.heads, d.heads};
    queries_ = Ragged::from_lengths(d.queries);
    keys_ = Ragged::from_lengths(d.keys);
    in.query_offsets = queries_.offsets();
    in.key_offsets = keys_.offsets();
    const int64_t stored = d.stored > 0 ? d.stored : keys_.rows();
    for (int32_t j = 0; d.stored > 0 && j < keys_.rows(); ++j) {
      rows_.push_back(static_cast<int32_t>(random_.below(static_cast<uint32_t>(stored))));
    }
    in.key_rows = rows_;
    q = matrix(q_, queries_.rows(), int64_t{d.heads} * d.d_key, d.q_padding);
    k = matrix(k_, stored, int64_t{d.key_heads} * d.d_key, d.k_padding);
    v = matrix(v_, stored, int64_t{d.value_heads} * d.d_value, d.v_padding);
    in.q = q;
    in.k = k;
    in.v = v;
    in.mask = d.mask;
    if (d.density >= 0) choose_bits(d.density);
    for (int32_t s = 0; s < queries_.sequences(); ++s) sentences_.push_back(int64_t{s} * s + 3);
    in.dropout.rate = d.rate;
    in.dropout.stream = dropout_stream(d.seed, 7, 11);
    in.dropout.offsets = in.query_offsets;
    if (d.sentences) in.dropout.sentences = sentences_;
    choose_bias(d);
    fill(d.poison);
    make_results(d);
    if (d.halves) store_halves();
  }
  GuardedAttention(const GuardedAttention&) = delete;
  GuardedAttention& operator=(const GuardedAttention&) = delete;

  AttentionInputs in;
  AttentionOutputs out;
  AttentionGradients gradients;
  MatrixView q, k, v;  // what `in` reads

  static constexpr std::array<int32_t, 4> kDistances{0, -1, 2, -130};  // whose weights the statistics hold

  bool has_gradients() const { return in.key_rows.empty() && !in.halves() && out.lse != nullptr; }
  /// The forward pass, and the backward pass if there is one.
  void run() const {
    attention_forward(in, out);
    if (has_gradients()) attention_backward(in, gradients);
  }
  int64_t longest_keys() const { return keys_.longest(); }
  int64_t longest_queries() const { return queries_.longest(); }
  /// Multiply-adds of the forward pass.
  int64_t work() const {
    int64_t sum = 0;
    for (int32_t s = 0; s < queries_.sequences(); ++s) sum += int64_t{queries_.length(s)} * keys_.length(s);
    return sum * in.heads * (in.d_key + in.d_value);
  }
  /// Where something was written that is no result's place, or "".
  std::string written_elsewhere() const {
    for (const auto& [name, view, memory] : results_) {
      if (!memory->clean_before()) return std::string("before ") + name;
      for (int64_t i = 0; i + 1 < view.rows; ++i) {
        if (!untouched(view.row(i) + view.cols, view.stride - view.cols)) {
          return std::string("between the rows of ") + name;
        }
      }
    }
    return "";
  }
  /// A result that was written, or "".
  std::string written_at_all() const {
    for (const auto& [name, view, memory] : results_) {
      if (!memory->clean_before() || !untouched(memory->data(), memory->size())) return name;
    }
    return "";
  }
  /// Every result, one after the other.
  std::vector<float> results() const {
    std::vector<float> all;
    for (const auto& result : results_) {
      const auto span = result.memory->span();
      all.insert(all.end(), span.begin(), span.end());
    }
    return all;
  }
  std::string text() const {
    std::string lengths;
    for (int32_t s = 0; s < queries_.sequences(); ++s) {
      lengths += fmt::format(" {}x{}", queries_.length(s), keys_.length(s));
    }
    return fmt::format(
        "heads {}/{}/{} d {}/{} lengths{} strides {}/{}/{} mask {} scale {} soft_cap {} dropout {} gate {} "
        "key_rows {} halves {} "
        "slopes {} by_distance {} buckets {} elements {} by_query {} by_key {} statistics {}",
        in.heads, in.key_heads, in.value_heads, in.d_key, in.d_value, lengths, in.q.stride, k.stride,
        v.stride, mask_name_, in.scale, in.soft_cap.value_or(0), in.dropout.rate, in.gate.rows,
        in.key_rows.size(), in.halves(), in.bias.slopes.size(), in.bias.by_distance.size(),
        in.bias.buckets.size(), in.bias.elements.size(), in.bias.by_query.cols, in.bias.by_key.cols,
        out.statistics.wanted());
  }

 private:
  static constexpr uint32_t kUntouched = 0x7fc5a5a5;  // a NaN that no arithmetic makes

  struct Result {
    const char* name;
    MatrixView view;
    const Guarded<float>* memory;
  };

  static bool untouched(const float* numbers, int64_t count) {
    return std::all_of(numbers, numbers + count,
                       [](float x) { return std::bit_cast<uint32_t>(x) == kUntouched; });
  }
  static MatrixView matrix(Guarded<float>& memory, int64_t rows, int64_t cols, int64_t padding) {
    const int64_t stride = cols + padding;
    memory = Guarded<float>(rows == 0 ? 0 : (rows - 1) * stride + cols, std::bit_cast<float>(kUntouched));
    return {memory.data(), rows, cols, stride};
  }
  void fill_row(const MatrixView& view, int64_t row) {
    for (int64_t j = 0; j < view.cols; ++j) view(row, j) = static_cast<float>(random_.normal());
  }

  void choose_bits(int density) {
    const int64_t words = (keys_.longest() + 63) / 64;
    bits_ = Guarded<uint64_t>(queries_.rows() * words);
    for (uint64_t& word : bits_.span()) {
      word = ~uint64_t{0};
      for (int n = 0; n < density; ++n) word &= uint64_t{random_.bits()} << 32 | random_.bits();
      if (random_.below(8) == 0) word = 0;
    }
    in.mask = Mask::dense({bits_.data(), words});
    mask_name_ = fmt::format("dense 1/{}", 1 << density);
  }

  std::span<const float> bias_numbers(Guarded<float>& memory, int64_t size) {
    memory = Guarded<float>(size);
    for (float& x : memory.span()) x = static_cast<float>(random_.normal());
    return memory.span();
  }
  void choose_bias(const AttentionDescription& d) {
    AttentionBias& bias = in.bias;
    if (d.slopes) bias.slopes = bias_numbers(slopes_, in.heads);
    if (d.by_distance) {
      bias.distance_clip = d.clip;
      bias.distance_columns = d.buckets > 0 ? d.buckets : 2 * d.clip + 1;
      if (d.buckets > 0) {
        buckets_ = some_buckets(d.clip, d.buckets);
        bias.buckets = buckets_.span();
      }
      bias.by_distance = bias_numbers(by_distance_, int64_t{in.heads} * bias.distance_columns);
    }
    if (d.elements) bias.elements = bias_numbers(elements_, attention_weights_size(in));
    if (!d.by_query && !d.by_key) return;
    bias.vector_clip = d.clip / 2;
    if (d.buckets > 0) {
      bias.vector_columns = d.buckets;
      vector_buckets_ = some_buckets(bias.vector_clip, d.buckets);
      bias.vector_buckets = vector_buckets_.span();
    }
    const int64_t columns = in.heads * bias.columns_of_vectors();
    if (d.by_query) {
      by_query_view_ = matrix(by_query_, queries_.rows(), columns, d.output_padding);
      bias.by_query = by_query_view_;
    }
    if (d.by_key) {
      by_key_view_ = matrix(by_key_, keys_.rows(), columns, d.output_padding);
      bias.by_key = by_key_view_;
    }
  }

  /// Buckets by chance, one for each distance up to `clip`.
  Guarded<int32_t> some_buckets(int clip, int count) {
    Guarded<int32_t> buckets(2 * clip + 1);
    for (int32_t& bucket : buckets.span())
      bucket = static_cast<int32_t>(random_.below(static_cast<uint32_t>(count)));
    return buckets;
  }

  /// Numbers in every place that takes part; with `poison`, NaN stays in all others.
  void fill(bool poison) {
    std::vector<bool> wanted(static_cast<size_t>(in.k.rows), !poison),
        seen(static_cast<size_t>(keys_.rows()), !poison);
    for (int32_t s = 0; s < queries_.sequences(); ++s) {
      for (int64_t i = 0; i < queries_.length(s); ++i) {
        const int64_t row = queries_.begin(s) + i;
        bool sees = !poison;
        for (int64_t j = 0; poison && j < keys_.length(s); ++j) {
          if (!in.mask.allows(row, i, j, queries_.length(s), keys_.length(s))) continue;
          const auto at = static_cast<size_t>(keys_.begin(s) + j);
          wanted[rows_.empty() ? at : static_cast<size_t>(rows_[at])] = true;
          seen[at] = true;
          sees = true;
        }
        if (!sees) continue;
        fill_row(q, row);
        fill_row(by_query_view_, row);
      }
    }
    for (int64_t row = 0; row < in.k.rows; ++row) {
      if (!wanted[static_cast<size_t>(row)]) continue;
      fill_row(k, row);
      fill_row(v, row);
    }
    for (int64_t key = 0; key < keys_.rows(); ++key) {
      if (seen[static_cast<size_t>(key)]) fill_row(by_key_view_, key);
    }
  }

  /// Keys and values rounded, in place of those of float32; `k` and `v` become what the rounded ones are.
  void store_halves() {
    const auto rounded = [](Guarded<uint16_t>& memory, const MatrixView& from) {
      memory =
          Guarded<uint16_t>(from.rows == 0 ? 0 : (from.rows - 1) * from.stride + from.cols, kUntouched >> 16);
      const HalfView to(memory.data(), from.rows, from.cols, from.stride);
      for (int64_t i = 0; i < from.rows; ++i) {
        for (int64_t c = 0; c < from.cols; ++c) {
          if (!std::isnan(from(i, c))) to(i, c) = to_bfloat16(from(i, c));
          from(i, c) = from_bfloat16(to(i, c));
        }
      }
      return to;
    };
    in.half_k = rounded(half_k_, k);
    in.half_v = rounded(half_v_, v);
    in.k = in.v = {};
  }

  void make_results(const AttentionDescription& d) {
    const int64_t n = queries_.rows(), cols = int64_t{in.heads} * in.d_value;
    const auto result = [&](const char* name, Guarded<float>& memory, int64_t rows, int64_t width,
                            int64_t padding) {
      const MatrixView view = matrix(memory, rows, width, padding);
      results_.push_back({name, view, &memory});
      return view;
    };
    out.output = result("output", output_, n, cols, d.output_padding);
    if (d.lse) out.lse = result("lse", lse_, n, in.heads, 0).data;
    if (d.weights) out.weights = result("weights", weights_, 1, attention_weights_size(in), 0).data;
    if (d.statistics) {
      AttentionStatistics& wanted = out.statistics;
      wanted.highest = result("highest", highest_, n, in.heads, 0).data;
      wanted.entropy = result("entropy", entropy_, n, in.heads, 0).data;
      wanted.expected_position = result("expected_position", position_, n, in.heads, 0).data;
      wanted.expected_distance = result("expected_distance", distance_, n, in.heads, 0).data;
      wanted.distances = kDistances;
      wanted.mass = result("mass", mass_, n, in.heads * int64_t{kDistances.size()}, 0).data;
    }
    gradients.output = out.output;
    gradients.lse = out.lse;
    const MatrixView d_output = matrix(d_output_, n, cols, d.q_padding);
    for (int64_t i = 0; i < n; ++i) fill_row(d_output, i);
    gradients.d_output = d_output;
    gradients.d_q = result("d_q", d_q_, n, in.q.cols, d.v_padding);
    gradients.d_k = result("d_k", d_k_, in.k.rows, in.k.cols, d.q_padding);
    gradients.d_v = result("d_v", d_v_, in.v.rows, in.v.cols, d.k_padding);
    if (d.d_gate)
      gradients.d_gate = result("d_gate", d_gate_, d.d_gate_of_each ? queries_.sequences() : 1, in.heads, 0);
    if (!d.d_bias) return;
    const auto like = [&](const char* name, Guarded<float>& memory, std::span<const float> numbers) {
      const auto size = static_cast<int64_t>(numbers.size());
      return size == 0 ? nullptr : result(name, memory, 1, size, 0).data;
    };
    AttentionBiasGradients& wanted = gradients.d_bias;
    wanted.slopes = like("d_bias.slopes", d_slopes_, in.bias.slopes);
    wanted.by_distance = like("d_bias.by_distance", d_by_distance_, in.bias.by_distance);
    wanted.elements = like("d_bias.elements", d_elements_, in.bias.elements);
    if (in.bias.by_query.cols != 0) {
      wanted.by_query = result("d_bias.by_query", d_by_query_, n, in.bias.by_query.cols, d.q_padding);
    }
    if (in.bias.by_key.cols != 0)
      wanted.by_key = result("d_bias.by_key", d_by_key_, keys_.rows(), in.bias.by_key.cols, d.k_padding);
  }

  Random random_;
  Ragged queries_, keys_;
  Guarded<float> q_, k_, v_, output_, lse_, weights_, d_output_, d_q_, d_k_, d_v_, d_gate_;
  Guarded<float> slopes_, by_distance_, elements_, by_query_, d_slopes_, d_by_distance_, d_elements_,
      d_by_query_, by_key_, d_by_key_;
  Guarded<float> highest_, entropy_, position_, distance_, mass_;
  Guarded<uint16_t> half_k_, half_v_;
  Guarded<uint64_t> bits_;
  Guarded<int32_t> buckets_, vector_buckets_;
  MatrixView by_query_view_, by_key_view_;
  std::vector<int32_t> rows_;
  std::vector<float> gate_;
  std::vector<int64_t> sentences_;
  std::vector<Result> results_;
  std::string mask_name_;
};

}  // namespace mh

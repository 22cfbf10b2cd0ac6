// One try of the fuzzer: bytes choose the inputs of attention. Valid inputs must give the result of the
// reference and write nothing else; invalid ones must throw an error that names the field, and write
// nothing.
#pragma once

#include <stdexcept>

#include "attention_case.h"
#include "attention_spoil.h"
#include "guarded_attention.h"

namespace mh {

/// What the library did wrong.
class Wrong : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {

inline void expect_close(const GuardedAttention& p, const char* name, double error, double bound) {
  if (!(error <= bound))
    throw Wrong(fmt::format("{} is wrong by {}, allowed {}: {}", name, error, bound, p.text()));
}

inline void expect_numbers(const GuardedAttention& p, const char* name, const float* got,
                           const std::vector<double>& want, double bound) {
  for (size_t i = 0; got && i < want.size(); ++i) {
    const auto number = static_cast<double>(got[i]);
    const bool exact = std::isinf(want[i]) || bound == 0;
    if (exact ? number != want[i] : !(std::abs(number - want[i]) <= bound)) {
      throw Wrong(
          fmt::format("{} {} is {}, expected {} within {}: {}", name, i, number, want[i], bound, p.text()));
    }
  }
}

/// The bounds of attention_test.cpp: an error of the scores is one of the weights' logarithms and counts as
/// often as the values are large.
inline void compare(const GuardedAttention& p) {
  const auto x = reference::values_of(p.in);
  const auto want = reference::attention(p.in, x, GuardedAttention::kDistances);
  double gate = 1;
  for (const double g : x.gate) gate = std::max(gate, std::abs(g));
  const double largest = std::max(1.0, want.largest);
  const int64_t keys = std::max<int64_t>(1, p.longest_keys());
  const auto reach = static_cast<double>(std::max(keys, p.longest_queries()));
  const double of_score = tolerance(largest, p.in.d_key) + 1e-6;
  const double of_weight = 2 * tolerance(largest, p.in.d_key + keys) + 2e-6;
  expect_close(p, "output", worst(want.output, p.out.output),
               tolerance(largest, p.in.d_key + keys) * largest * gate);
  expect_numbers(p, "lse", p.out.lse, want.lse, of_score);
  for (size_t i = 0; p.out.weights && i < want.weights.size(); ++i) {
    expect_numbers(p, "weight", p.out.weights + i, {want.weights[i]},
                   want.weights[i] == 0 ? 0 : 2 * of_score);
  }
  const AttentionStatistics& statistics = p.out.statistics;
  expect_numbers(p, "highest", statistics.highest, want.highest, of_score);
  expect_numbers(p, "entropy", statistics.entropy, want.entropy, of_weight * (4 + std::log(reach)));
  expect_numbers(p, "expected_position", statistics.expected_position, want.expected_position,
                 of_weight * reach);
  expect_numbers(p, "expected_distance", statistics.expected_distance, want.expected_distance,
                 of_weight * reach);
  expect_numbers(p, "mass", statistics.mass, want.mass, of_weight);
  if (!p.has_gradients()) return;
  const auto g = reference::attention_gradients(p.in, x, reference::dense(p.gradients.d_output));
  const int64_t group = p.in.heads / std::min(p.in.key_heads, p.in.value_heads);
  const double most = std::max(1.0, g.largest);
  const auto terms = static_cast<double>(p.in.d_key + p.in.d_value + keys + p.longest_queries() * group);
  const double close = (8 + 2 * std::sqrt(terms)) * 0x1p-24 * most * most * gate;
  const double summed = close * std::sqrt(static_cast<double>(group));
  expect_close(p, "d_q", worst(g.d_q, p.gradients.d_q), close);
  expect_close(p, "d_k", worst(g.d_k, p.gradients.d_k), summed);
  expect_close(p, "d_v", worst(g.d_v, p.gradients.d_v), summed);
  const MatrixView& d_gate = p.gradients.d_gate;
  expect_numbers(p, "d_gate", d_gate.data, reference::gates_in_rows(g.d_gate, p.in.heads, d_gate.rows),
                 close * std::sqrt(static_cast<double>(1 + p.in.q.rows * p.in.d_value)));
  const AttentionBiasGradients& bias = p.gradients.d_bias;
  const double sums = close * std::sqrt(static_cast<double>(1 + p.in.q.rows)) * reach;
  expect_numbers(p, "d_bias.slopes", bias.slopes, g.slopes, sums * reach);
  expect_numbers(p, "d_bias.by_distance", bias.by_distance, g.by_distance, sums);
  expect_numbers(p, "d_bias.elements", bias.elements, g.elements, close);
  if (bias.by_query.cols != 0) {
    expect_close(p, "d_bias.by_query", worst(g.by_query, bias.by_query), close * std::sqrt(reach));
  }
  if (bias.by_key.cols != 0)
    expect_close(p, "d_bias.by_key", worst(g.by_key, bias.by_key), close * std::sqrt(reach));
}

}  // namespace detail

/// Runs both passes. Throws Wrong if they fail, write elsewhere or, where that takes the reference no more
/// than `most_work` multiply-adds, differ from it.
inline void try_possible(const GuardedAttention& p, int64_t most_work = 1 << 19) {
  try {
    p.run();
  } catch (const Error& e) {
    throw Wrong(fmt::format("a possible description is an error: {}: {}", e.what(), p.text()));
  }
  if (const std::string where = p.written_elsewhere(); !where.empty()) {
    throw Wrong(fmt::format("wrote {}: {}", where, p.text()));
  }
  if (p.work() <= most_work) detail::compare(p);
}

namespace detail {

inline void try_impossible(const GuardedAttention& p, const Spoilt& spoilt) {
  const std::string field = spoilt.fields.front();
  try {
    if (spoilt.backward) {
      attention_backward(p.in, p.gradients);
    } else {
      attention_forward(p.in, p.out);
    }
  } catch (const Error& e) {
    const std::string words = e.what();
    const bool named = std::any_of(spoilt.fields.begin(), spoilt.fields.end(),
                                   [&](const std::string& name) { return words.find(name) != words.npos; });
    const bool of_kind = dynamic_cast<const UsageError*>(&e) || dynamic_cast<const ShapeError*>(&e);
    if (!named || !of_kind || words.find('\n') != words.npos) {
      throw Wrong(fmt::format("the error does not name \"{}\" in one line: {}", field, words));
    }
    if (const std::string name = p.written_at_all(); !name.empty()) {
      throw Wrong(fmt::format("{} was written before the error: {}", name, words));
    }
    return;
  }
  throw Wrong(fmt::format("impossible \"{}\" is no error: {}", field, p.text()));
}

}  // namespace detail

/// Returns whether the description was possible. Throws Wrong.
inline bool try_attention(std::span<const uint8_t> bytes) {
  Choices choices(bytes);
  const bool impossible = choices.one_in(3);
  GuardedAttention p(random_description(choices));
  Spoilt spoilt;
  if (impossible) spoil(choices, p, spoilt);
  // Gradients through key_rows and of bfloat16 do not exist: that error comes before any other.
  if (spoilt.fields.empty() || (spoilt.backward && (!p.in.key_rows.empty() || p.in.halves()))) {
    try_possible(p);
    return true;
  }
  detail::try_impossible(p, spoilt);
  return false;
}

}  // namespace mh

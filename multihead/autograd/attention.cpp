#include "multihead/autograd/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include "multihead/autograd/destination.h"

namespace mh {
namespace {

bool sees_a_key(const Mask& mask, int64_t row, int64_t i, int64_t queries, int64_t keys) {
  const Mask::Range range = mask.visible(i, queries, keys);
  for (int64_t j = range.begin; j < range.end; ++j) {
    if (mask.allows(row, i, j, queries, keys)) return true;
  }
  return false;
}

/// Where all scores that a query may see overflowed to -infinity, the kernel gives 0, as to a query that may see
/// no key. But the softmax of such scores is not a number, and nobody must take the 0 for a result.
void mark_overflow(const AttentionInputs& in, const float* lse, MatrixView y) {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  if (!in.bias.elements.empty()) return;  // these may be -infinity on purpose
  for (size_t s = 0; s + 1 < in.query_offsets.size(); ++s) {
    const int64_t queries = in.query_offsets[s + 1] - in.query_offsets[s];
    const int64_t keys = in.key_offsets[s + 1] - in.key_offsets[s];
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t row = in.query_offsets[s] + i;
      const float* of_row = lse + row * in.heads;
      if (std::find(of_row, of_row + in.heads, kNothing) == of_row + in.heads) continue;
      if (!sees_a_key(in.mask, row, i, queries, keys)) continue;
      for (int h = 0; h < in.heads; ++h) {
        if (of_row[h] == kNothing)
          std::fill_n(y.row(row) + int64_t{h} * in.d_value, in.d_value, std::nanf(""));
      }
    }
  }
}

}  // namespace

Var attention(Tape& tape, Var q, Var k, Var v, const AttentionInputs& settings,
              const LearnedInputs& learned) {
  AttentionInputs inputs = settings;
  inputs.q = q.value();
  MH_ASSERT(static_cast<bool>(k) != settings.halves());
  if (k) {
    inputs.k = k.value();
    inputs.v = v.value();
  }
  if (learned.by_distance != nullptr) {
    const Weight& numbers = learned.by_distance->value;
    inputs.bias.by_distance = {numbers.data(), static_cast<size_t>(numbers.size())};
  }
  if (learned.by_query) inputs.bias.by_query = learned.by_query.value();
  if (learned.by_key) inputs.bias.by_key = learned.by_key.value();
  if (learned.gates) inputs.gate = learned.gates.value();
  Var y = tape.make(q.rows(), int64_t{inputs.heads} * inputs.d_value,
                    {q, k, v, learned.by_query, learned.by_key, learned.gates});
  float* lse = tape.arena().array<float>(q.rows() * inputs.heads).data();
  attention_forward(inputs, {.output = y.value(), .lse = lse});
  mark_overflow(inputs, lse, y.value());
  if (inputs.halves()) {
    MH_ASSERT(!y.wants_gradient());
    return y;
  }
  tape.record(y, [&tape, q, k, v, y, inputs, learned, lse] {
    const Destination dq(tape, q), dk(tape, k), dv(tape, v);
    AttentionGradients gradients{.output = y.value(),
                                 .lse = lse,
                                 .d_output = y.gradient(),
                                 .d_q = dq.written,
                                 .d_k = dk.written,
                                 .d_v = dv.written};
    MatrixView d_by_distance;
    if (learned.by_distance != nullptr && tape.trains()) {
      const Weight& numbers = learned.by_distance->value;
      d_by_distance = tape.arena().matrix<float>(numbers.rows(), numbers.cols());
      gradients.d_bias.by_distance = d_by_distance.data;
    }
    std::optional<Destination> d_by_query, d_by_key, d_gates;
    if (learned.by_query) {
      d_by_query.emplace(tape, learned.by_query);
      gradients.d_bias.by_query = d_by_query->written;
    }
    if (learned.by_key) {
      d_by_key.emplace(tape, learned.by_key);
      gradients.d_bias.by_key = d_by_key->written;
    }
    if (learned.gates && learned.gates.wants_gradient()) {
      d_gates.emplace(tape, learned.gates);
      gradients.d_gate = d_gates->written;
    }
    attention_backward(inputs, gradients);
    for (const Destination* written : {&dq, &dk, &dv}) written->finish();
    for (const auto* written : {&d_by_query, &d_by_key, &d_gates}) {
      if (*written) (*written)->finish();
    }
    if (d_by_distance.data != nullptr) {
      copy_or_add(d_by_distance, learned.by_distance->gradient_sum(), Write::kAdd);
    }
  });
  return y;
}

}  // namespace mh

#include "multihead/autograd/attention.h"

#include <optional>

#include "multihead/autograd/destination.h"

namespace mh {

Var attention(Tape& tape, Var q, Var k, Var v, const AttentionInputs& settings, const LearnedBias& bias,
              float* weights) {
  AttentionInputs inputs = settings;
  inputs.q = q.value();
  inputs.k = k.value();
  inputs.v = v.value();
  if (bias.by_distance != nullptr) {
    const Weight& numbers = bias.by_distance->value;
    inputs.bias.by_distance = {numbers.data(), static_cast<size_t>(numbers.size())};
  }
  if (bias.by_query) inputs.bias.by_query = bias.by_query.value();
  Var y = tape.make(q.rows(), int64_t{inputs.heads} * inputs.d_value);
  float* lse = y.wants_gradient() ? tape.arena().array<float>(q.rows() * inputs.heads).data() : nullptr;
  attention_forward(inputs, {.output = y.value(), .lse = lse, .weights = weights});
  tape.record(y, [&tape, q, k, v, y, inputs, bias, lse] {
    const Destination dq(tape, q), dk(tape, k), dv(tape, v);
    AttentionGradients gradients{.output = y.value(),
                                 .lse = lse,
                                 .d_output = y.gradient(),
                                 .d_q = dq.written,
                                 .d_k = dk.written,
                                 .d_v = dv.written};
    MatrixView d_by_distance;
    if (bias.by_distance != nullptr) {
      const Weight& numbers = bias.by_distance->value;
      d_by_distance = tape.arena().matrix<float>(numbers.rows(), numbers.cols());
      gradients.d_bias.by_distance = d_by_distance.data;
    }
    std::optional<Destination> d_by_query;
    if (bias.by_query) {
      d_by_query.emplace(tape, bias.by_query);
      gradients.d_bias.by_query = d_by_query->written;
    }
    attention_backward(inputs, gradients);
    for (const Destination* written : {&dq, &dk, &dv}) written->finish();
    if (d_by_query) d_by_query->finish();
    if (bias.by_distance != nullptr) {
      copy_or_add(d_by_distance, bias.by_distance->gradient_sum(), Write::kAdd);
    }
  });
  return y;
}

}  // namespace mh

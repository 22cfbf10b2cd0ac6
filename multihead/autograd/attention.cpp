#include "multihead/autograd/attention.h"

#include "multihead/kernels/elementwise.h"

namespace mh {
namespace {

/// The kernel writes gradients, it does not add: where something is there already it writes beside it.
struct Destination {
  Tape::Target target;
  MatrixView written;

  Destination(Tape& tape, Var input) : target(tape.gradient_of(input)), written(target.gradient) {
    if (target.write == Write::kAdd) written = tape.arena().matrix<float>(input.rows(), input.cols());
  }
  void finish() const {
    if (target.write == Write::kAdd) copy_or_add(written, target.gradient, Write::kAdd);
  }
};

}  // namespace

Var attention(Tape& tape, Var q, Var k, Var v, const AttentionInputs& settings, float* weights) {
  AttentionInputs inputs = settings;
  inputs.q = q.value();
  inputs.k = k.value();
  inputs.v = v.value();
  Var y = tape.make(q.rows(), int64_t{inputs.heads} * inputs.d_value);
  float* lse = y.wants_gradient() ? tape.arena().array<float>(q.rows() * inputs.heads).data() : nullptr;
  attention_forward(inputs, {.output = y.value(), .lse = lse, .weights = weights});
  tape.record(y, [&tape, q, k, v, y, inputs, lse] {
    const Destination dq(tape, q), dk(tape, k), dv(tape, v);
    attention_backward(inputs, {.output = y.value(),
                                .lse = lse,
                                .d_output = y.gradient(),
                                .d_q = dq.written,
                                .d_k = dk.written,
                                .d_v = dv.written});
    dq.finish();
    dk.finish();
    dv.finish();
  });
  return y;
}

}  // namespace mh

#include "multihead/autograd/rotary.h"

#include "multihead/autograd/destination.h"

namespace mh {

Var rotate(Tape& tape, Var x, const Rotary& rotary) {
  Var y = tape.make(x.rows(), x.cols(), {x});
  rotate(rotary, x.value(), y.value());
  tape.record(y, [&tape, x, y, rotary] {
    if (!x.wants_gradient()) return;
    const Destination dx(tape, x);
    rotate_gradient(rotary, y.gradient(), dx.written);
    dx.finish();
  });
  return y;
}

}  // namespace mh

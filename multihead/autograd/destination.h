// For kernels that write gradients and do not add.
#pragma once

#include "multihead/autograd/tape.h"
#include "multihead/kernels/elementwise.h"

namespace mh {

/// Where a kernel writes the gradient of `input`: in its place, or beside it where something is there
/// already. REQUIRES: input.wants_gradient().
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

}  // namespace mh

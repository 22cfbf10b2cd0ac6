// Lets a kernel that overwrites its output also serve where a gradient must be added to.
#pragma once

#include "multihead/autograd/tape.h"
#include "multihead/kernels/elementwise.h"

namespace mh {

/// The memory into which a kernel writes the gradient of `input`: the gradient itself, or, when it already
/// holds something, a matrix beside it that finish() adds. REQUIRES: input.wants_gradient().
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

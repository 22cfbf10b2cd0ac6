// Lets a kernel that overwrites its output also serve where a gradient must be added to.
#pragma once

#include "multihead/autograd/tape.h"
#include "multihead/kernels/elementwise.h"

namespace mh {

/// The memory into which a kernel writes the gradient of `input`: the gradient itself, or a matrix beside it,
/// which finish() adds where the gradient already holds something, and drops where none is wanted.
struct Destination {
  Tape::Target target;
  MatrixView written;

  Destination(Tape& tape, Var input)
      : target(input.wants_gradient() ? tape.gradient_of(input) : Tape::Target{}), written(target.gradient) {
    if (beside()) written = tape.arena().matrix<float>(input.rows(), input.cols());
  }
  void finish() const {
    if (beside() && target.gradient.data != nullptr) copy_or_add(written, target.gradient, Write::kAdd);
  }

 private:
  bool beside() const { return target.gradient.data == nullptr || target.write == Write::kAdd; }
};

}  // namespace mh

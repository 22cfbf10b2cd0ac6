// Compares the gradients of a function with central differences, in double: every number of every input is
// moved by +step and -step.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// A scalar function [1, 1] of matrices, composed of ops.
using DoubleFunction =
    std::function<BasicVar<double>(BasicTape<double>& tape, std::span<const BasicVar<double>> inputs)>;

/// Returns the largest |gradient - (f(x + step) - f(x - step)) / (2 step)| / max(1, |gradient|) over all
/// numbers of all inputs.
double gradcheck(const DoubleFunction& f, std::vector<BasicTensor<double>> inputs, double step = 1e-5);

}  // namespace mh

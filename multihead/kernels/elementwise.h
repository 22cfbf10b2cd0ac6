// Elementwise work: biases, activations, sums of columns. Each backward pass follows its forward pass.
// Tasks of products call these on their blocks of rows, while the rows are in the cache.
#pragma once

#include "multihead/base/enum_names.h"
#include "multihead/base/matrix_view.h"

namespace mh {

/// kRelu: max(0, x). kGelu: x Phi(x), Phi by erf. kGeluTanh: its approximation
/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel 2016), GPT-2's. kSwish: x / (1 +
/// e^-x), also called SiLU.
enum class Activation { kNone, kRelu, kGelu, kGeluTanh, kSwish };
/// Their names in flags, files of settings and reports.
inline constexpr EnumNames<Activation> kActivationNames = {{"relu", Activation::kRelu},
                                                           {"gelu", Activation::kGelu},
                                                           {"gelu_tanh", Activation::kGeluTanh},
                                                           {"swish", Activation::kSwish}};

/// y += bias for every row; bias [1, cols], or empty for none. On the calling thread.
void add_bias(ConstMatrixView bias, MatrixView y);

/// y = activation(z); y may be z. On the calling thread.
void activate(Activation activation, ConstMatrixView z, MatrixView y);
/// dz = dy * activation'(z); dz may be dy. For kRelu z may also be the activation's output: the sign is the
/// same.
void activation_gradient(Activation activation, ConstMatrixView z, ConstMatrixView dy, MatrixView dz);

/// dz = dy * activation(z) / z, where z is 0 the limit of it; the same views as activation_gradient().
void activation_factor(Activation activation, ConstMatrixView z, ConstMatrixView dy, MatrixView dz);

/// y *= x, both [rows, cols]: the product of the two halves of a gated layer. On the calling thread.
void multiply_elements(ConstMatrixView x, MatrixView y);

/// y (+)= x, both [rows, cols]. On the calling thread.
void copy_or_add(ConstMatrixView x, MatrixView y, Write write);

/// sums[c] (+)= sum over rows of x(r, c): the gradient of a bias. In parallel; sums run in blocks of rows
/// fixed by the shape.
void column_sums(ConstMatrixView x, MatrixView sums, Write write = Write::kAdd);

}  // namespace mh

// Affine: y = x W + b, fused with what surrounds it in a layer of a Transformer (activation, dropout,
// residual sum, norm). The fused work runs block by block of rows, while the rows are in the cache.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"
#include "multihead/kernels/dropout.h"
#include "multihead/kernels/elementwise.h"
#include "multihead/kernels/norm.h"

namespace mh {

/// Several matrices side by side, [w_0 | w_1 | ...] and [b_0 | b_1 | ...], so that one product computes
/// them all. It does not own the parameters.
class Affine {
 public:
  Affine() = default;
  /// weights [K, n_i]; biases [1, n_i], none or one for each weight.
  Affine(std::vector<const Parameter*> weights, std::vector<const Parameter*> biases);

  int64_t inputs() const { return inputs_; }    // K
  int64_t outputs() const { return outputs_; }  // sum of n_i
  const PackedParameters& weights() const { return weights_; }
  /// [1, outputs], or empty.
  ConstMatrixView bias() const;

  /// dW_i += x^T dy_i, db_i += sum of the rows of dy_i.
  void add_gradients(ConstMatrixView x, ConstMatrixView dy) const;

 private:
  int64_t inputs_ = 0, outputs_ = 0;
  PackedParameters weights_, biases_;
  MadeOnce<Tensor> joined_bias_;
};

struct AffineOptions {
  Activation activation = Activation::kNone;
  Dropout dropout;  // after the activation
};

/// dropout(activation(x W + b)): [N, K] -> [N, outputs].
Var affine(Tape& tape, Var x, const Affine& parameters, const AffineOptions& options = {});

/// activation(x W_g + b_g) * (x W_u + b_u) with dropout, where the parameters are [W_g | W_u] and [b_g |
/// b_u]: the gated layer of Shazeer 2020. [N, K] -> [N, outputs / 2].
Var gated_affine(Tape& tape, Var x, const Affine& parameters, const AffineOptions& options);

/// Gain and bias of a norm, both [1, cols]; an RMS norm has no bias, and a layer norm may have none.
struct NormParameters {
  const Parameter* gain = nullptr;
  const Parameter* bias = nullptr;
  NormKind kind = NormKind::kLayer;
  float epsilon = 1e-5f;

  Norm values() const {
    return {.kind = kind,
            .epsilon = epsilon,
            .gain = gain->value.view(),
            .bias = bias != nullptr ? bias->value.view() : ConstMatrixView()};
  }
};

/// residual + dropout(x W + b), followed by the norm when `norm` is not null (post-norm): [N, K] -> [N,
/// outputs].
Var affine_residual(Tape& tape, Var x, const Affine& parameters, Var residual, const Dropout& dropout,
                    const NormParameters* norm);

/// The same without a product: residual + dropout(x), followed by the norm when `norm` is not null: [N,
/// cols] -> [N, cols].
Var add_residual(Tape& tape, Var x, Var residual, const Dropout& dropout, const NormParameters* norm);

/// dropout(Norm(x)), the norm over the columns of each row.
Var normalise(Tape& tape, Var x, const NormParameters& norm, const Dropout& dropout = {});

}  // namespace mh

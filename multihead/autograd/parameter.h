// What is learned.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "multihead/kernels/gemm.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// A value [rows, cols] and the sum of its gradients since the last clear_gradient().
struct Parameter {
  Tensor value;
  Tensor gradient;       // made by the first use that needs one
  uint64_t version = 1;  // raise it whenever `value` is changed: copies in packed form follow

  Parameter() = default;
  Parameter(int64_t rows, int64_t cols) : value(rows, cols) {}
  void changed() { ++version; }
  /// Adds up in backward passes; made and cleared when it is not there yet.
  MatrixView gradient_sum() {
    if (gradient.size() != value.size()) gradient = Tensor(value.rows(), value.cols());
    return gradient.view();
  }
};

/// Parameters side by side, [w_0 | w_1 | ...], as the right factor of products; packed again when one has
/// changed. Not for use by two threads at once.
class PackedParameters {
 public:
  PackedParameters() = default;
  PackedParameters(std::initializer_list<Parameter*> parts) : parts_(parts) {}
  explicit PackedParameters(std::vector<Parameter*> parts) : parts_(std::move(parts)) {}

  std::span<Parameter* const> parts() const { return parts_; }
  /// B = [w_0 | w_1 | ...].
  const PackedMatrix& packed();
  /// B = [w_0 | w_1 | ...]^T.
  const PackedMatrix& packed_transposed();

 private:
  struct Copy {
    PackedMatrix matrix;
    uint64_t versions = 0;  // sum of the parts' versions when it was packed
  };
  uint64_t versions() const;
  std::vector<ConstMatrixView> views() const;

  std::vector<Parameter*> parts_;
  Copy plain_, transposed_;
};

/// Names and parameters of a layer or a model, in a fixed order: drives counting, saving, training and
/// printing.
using ParameterVisitor = std::function<void(const std::string& name, Parameter& parameter)>;

}  // namespace mh

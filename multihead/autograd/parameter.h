// What training learns: a matrix with its gradient, and packed copies of it for products.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/autograd/gradient.h"
#include "multihead/autograd/made_once.h"
#include "multihead/kernels/gemm.h"
#include "multihead/tensor/weight.h"

namespace mh {

/// A value [rows, cols] and the sum of its gradients since the last update. A layer that is const leaves
/// values alone; a backward pass still adds to gradients, so it is for one thread at a time.
struct Parameter {
  Weight value;
  mutable Gradient gradient;  // made by the first backward pass that reaches it
  uint64_t version = 1;       // raised by changed(): copies in packed form follow

  Parameter() = default;
  Parameter(int64_t rows, int64_t cols) : value(rows, cols) {}
  /// To be called whenever `value` was changed.
  void changed() { ++version; }
  /// Adds up in backward passes; made and cleared when it is not there yet.
  MatrixView gradient_sum() const { return gradient.sum(value.rows(), value.cols()); }
};

/// Parameters side by side, [w_0 | w_1 | ...], as the right factor of products; packed again when one has
/// changed. Reading is safe from several threads at once.
class PackedParameters {
 public:
  PackedParameters() = default;
  PackedParameters(std::initializer_list<const Parameter*> parts) : parts_(parts) {}
  explicit PackedParameters(std::vector<const Parameter*> parts) : parts_(std::move(parts)) {}

  std::span<const Parameter* const> parts() const { return parts_; }
  /// B = [w_0 | w_1 | ...].
  const PackedMatrix& packed() const;
  /// B = [w_0 | w_1 | ...]^T.
  const PackedMatrix& packed_transposed() const;
  /// The sum of the parts' versions: what a copy was made from.
  uint64_t versions() const;

 private:
  std::vector<StoredMatrix> stored() const;

  std::vector<const Parameter*> parts_;
  MadeOnce<PackedMatrix> plain_, transposed_;
};

/// Names and parameters of a layer or a model, in a fixed order: drives counting, saving, training and
/// printing.
using ParameterVisitor = std::function<void(const std::string& name, Parameter& parameter)>;
/// The same for who only reads.
using ConstParameterVisitor = std::function<void(const std::string& name, const Parameter& parameter)>;

/// A parameter under its name.
struct NamedParameter {
  std::string name;
  Parameter* parameter = nullptr;
};

/// All parameters of a model, a layer or an objective, in the order of its visit().
template <class Visited>
std::vector<NamedParameter> named_parameters(Visited& visited) {
  std::vector<NamedParameter> parameters;
  visited.visit(ParameterVisitor([&](const std::string& name, Parameter& parameter) {
    parameters.push_back({name, &parameter});
  }));
  return parameters;
}

}  // namespace mh

// Parameter: a matrix that training changes, with its gradient. PackedParameters: parameters in the form in
// which products read them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/autograd/gradient.h"
#include "multihead/autograd/made_once.h"
#include "multihead/base/precision.h"
#include "multihead/kernels/packed_matrix.h"
#include "multihead/tensor/weight.h"

namespace mh {

/// How products read a parameter.
enum class ReadBy {
  kNoProduct,          // its numbers are, or its rows, looked up
  kProduct,            // x W
  kTransposedProduct,  // x W^T
  kHeads,              // x W_i, W_i some rows for each head, always of float32
};

/// How a file stores a parameter.
struct StoredAs {
  std::string type = {};  // as the file calls it; empty: it was not read from a file
  int64_t bytes = 0;
};

/// A value [rows, cols] and the sum of its gradients since the last update. A const layer does not change
/// values, but its backward pass adds to gradients; so only one thread at a time may train.
struct Parameter {
  Weight value;
  mutable Gradient gradient;       // made by the first backward pass that reaches it
  uint64_t version = 1;            // raised by changed(), after which packed copies are made again
  PrecisionChoice precision = {};  // of the products that read the value forward (models/use_precision.h)
  mutable ReadBy read_by = ReadBy::kNoProduct;  // set by whoever multiplies with it
  StoredAs stored_as = {};

  Parameter() = default;
  Parameter(int64_t rows, int64_t cols) : value(rows, cols) {}
  /// Call this whenever `value` was changed.
  void changed() { ++version; }
  /// The matrix to which backward passes add; the first call allocates and clears it.
  MatrixView gradient_sum() const { return gradient.sum(value.rows(), value.cols()); }
};

/// What a product that reads the parameter alone multiplies with, packed with this precision; none: no product reads it. Several
/// that are packed side by side take as much together, or less where they are float32 panels: these share the last columns.
std::optional<PackedForm> packed_form(const Parameter& parameter, PrecisionChoice precision);

/// The right factor B of a product with parameters.
enum class RightFactor {
  kSideBySide,  // [w_0 | w_1 | ...]
  kTransposed,  // w_0^T, of one parameter
};

/// Parameters packed as the right factor B of products, and packed again when one has changed. Several threads may read at
/// once.
class PackedParameters {
 public:
  PackedParameters() = default;
  explicit PackedParameters(std::vector<const Parameter*> parts,
                            RightFactor factor = RightFactor::kSideBySide);

  std::span<const Parameter* const> parts() const { return parts_; }
  /// B, as exactly as the parameters' precision says.
  const PackedMatrix& packed() const;
  /// What gradients of products with B read: the numbers that the parameters have exactly, whatever the precision. They are those
  /// of packed() where these are exact and take fewer bits than float32; otherwise B^T is packed, too.
  GradientFactor gradient() const;
  /// The sum of the parts' versions; it tells whether a packed copy is still valid.
  uint64_t versions() const;

 private:
  struct Borrowed;
  Borrowed borrow() const;
  /// Packs blocks that stay blocks; returns false where a part has none along the columns of B.
  bool pack_blocks(PackedMatrix& packed) const;

  std::vector<const Parameter*> parts_;
  RightFactor factor_ = RightFactor::kSideBySide;
  MadeOnce<PackedMatrix> packed_, transposed_;
};

/// Called with the name and parameter of every parameter of a layer or model, in a fixed order. Counting,
/// saving, training and printing all use it.
using ParameterVisitor = std::function<void(const std::string& name, Parameter& parameter)>;
/// The same for callers that only read.
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

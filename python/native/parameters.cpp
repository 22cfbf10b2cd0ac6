// The numbers of a model: its parameters by name, and the matrices of heads.
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "call.h"
#include "model.h"
#include "multihead/base/error.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/canonical_weights.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/layer_weights.h"
#include "multihead/nn/weight_scheme.h"

namespace mh::python {
namespace {

/// What an array that shows a model's numbers keeps alive: the model, and the file that they lie in.
struct ShownNumbers {
  nb::object model;
  BorrowedMatrix numbers;
};

bool is_aligned(const void* at) {
  return reinterpret_cast<uintptr_t>(at) % alignof(float) == 0;
}

/// The numbers where they lie, if they are float32 there; otherwise as a copy. Read-only, [rows, cols].
NumpyConstFloats shown(const LoadedModel& loaded, const Weight& weight) {
  const size_t shape[] = {static_cast<size_t>(weight.rows()), static_cast<size_t>(weight.cols())};
  if (!weight.is_converted() && weight.number_type() == NumberType::kFloat32) {
    auto kept = std::make_unique<ShownNumbers>(ShownNumbers{nb::find(loaded), weight.borrow()});
    const StoredMatrix there = kept->numbers.matrix;
    if (is_aligned(there.data)) {
      const int64_t strides[] = {there.row_stride, there.col_stride};
      const nb::capsule owner(kept.release(),
                              [](void* held) noexcept { delete static_cast<ShownNumbers*>(held); });
      return NumpyConstFloats(reinterpret_cast<const float*>(there.data), 2, shape, owner, strides);
    }
  }
  auto copy = std::make_unique<Tensor>(long_call([&] {
    Tensor numbers(weight.rows(), weight.cols());
    const BorrowedMatrix from = weight.borrow();
    for (int64_t i = 0; i < weight.rows(); ++i)
      from.matrix.read_row(i, 0, weight.cols(), numbers.view().row(i));
    return numbers;
  }));
  const float* const data = copy->data();
  const nb::capsule owner(copy.release(), [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  return NumpyConstFloats(data, 2, shape, owner);
}

/// (name, rows, columns) of each.
std::vector<std::tuple<std::string, int64_t, int64_t>> parameter_shapes(const LoadedModel& loaded) {
  std::vector<std::tuple<std::string, int64_t, int64_t>> shapes;
  loaded.model().visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    shapes.emplace_back(name, parameter.value.rows(), parameter.value.cols());
  }));
  return shapes;
}

/// REQUIRES: it is one of parameter_shapes().
NumpyConstFloats parameter(const LoadedModel& loaded, const std::string& wanted) {
  const Parameter* found = nullptr;
  loaded.model().visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    if (name == wanted) found = &parameter;
  }));
  if (found == nullptr) throw InternalError(fmt::format("there is no parameter {}", wanted));
  return shown(loaded, found->value);
}

/// The table of the layer that predicts words, [V, d_model].
NumpyConstFloats output_table(const LoadedModel& loaded) {
  return shown(loaded, loaded.model().vocabulary().table().value);
}

/// Matrices of equal sizes one after the other, [matrices, rows, columns].
struct Stacked {
  std::vector<float> numbers;
  std::vector<int64_t> shape;

  template <class Matrix>
  void add(const Matrix& matrix) {
    if (shape.empty()) shape = {0, matrix.rows(), matrix.cols()};
    ++shape[0];
    for (int64_t i = 0; i < matrix.size(); ++i) numbers.push_back(static_cast<float>(matrix.data()[i]));
  }
};

/// Of all heads of an attention W_Q, b_Q, W_K, b_K, W_V, b_V and W_O, [heads, ...]; heads of keys and values where there are fewer.
/// And b_O [1, 1, d_model], zeros where there is none.
struct HeadArrays {
  std::vector<Stacked> all;
};

HeadArrays matrices_of(const LoadedModel& loaded, const std::string& attention) {
  const MultiHeadAttention& from = loaded.model().attention(attention);
  const HeadGeometry& g = from.geometry();
  const char* const why = weight_scheme_of(g).refusal(Change::kProjections);
  if (why != nullptr || !scheme_of(g).projects_keys())
    throw UsageError(
        fmt::format("{} has heads without matrices of their own ({}); `parameters` has what it is made of",
                    attention, why != nullptr ? why : "their keys are not projected"));
  const LayerWeights layer = weights_of(from, loaded.model().facts().d_model);
  const auto count = [&](HeadPart part) {
    return part == HeadPart::kQueries ? g.heads : part == HeadPart::kKeys ? g.key_heads : g.value_heads;
  };
  HeadArrays found;
  for (const HeadPart part : kHeadParts) {
    Stacked weights, biases;
    for (const HeadMatrix& head : heads_of(layer, part, count(part)))
      weights.add(head.weight), biases.add(head.bias);
    found.all.push_back(std::move(weights));
    found.all.push_back(std::move(biases));
  }
  Stacked outputs, bias;
  for (int head = 0; head < g.heads; ++head) outputs.add(output_matrix(layer, head));
  const int64_t width = outputs.shape[2];
  bias.add(layer.has("b_o") ? layer.values.at("b_o") : Tensor(1, width));
  found.all.push_back(std::move(outputs));
  found.all.push_back(std::move(bias));
  return found;
}

std::vector<NumpyFloats> head_matrices(const LoadedModel& loaded, const std::string& attention) {
  HeadArrays found = long_call([&] { return matrices_of(loaded, attention); });
  std::vector<NumpyFloats> arrays;
  for (Stacked& one : found.all) {
    const std::vector<int64_t> shape = one.shape;
    arrays.push_back(numpy_of(std::move(one.numbers), shape));
  }
  return arrays;
}

}  // namespace

void add_parameters(nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  model.def("parameter_shapes", parameter_shapes)
      .def("parameter", parameter, "name"_a)
      .def("output_table", output_table)
      .def("head_matrices", head_matrices, "attention"_a);
}

}  // namespace mh::python

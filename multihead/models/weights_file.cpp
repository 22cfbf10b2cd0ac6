#include "multihead/models/weights_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"

namespace mh {
namespace {

using Layout = TensorPlace::Layout;

/// The shape that a tensor at this place has in a file.
std::vector<int64_t> shape_in_file(const Weight& value, const TensorPlace& place) {
  const int64_t cols = value.cols() * place.parts;
  switch (place.layout) {
    case Layout::kTransposed:
      return {cols, value.rows()};
    case Layout::kVector:
      return {cols};
    case Layout::kMatrix:
      break;
  }
  return {value.rows(), cols};
}

void refuse_far_too_large(const WeightFiles& files, const FolderPlan& plan) {
  const double present = files.elements();
  if (plan.least_parameters <= 4 * present + 1e6) return;  // near enough to list each difference
  throw FormatError(fmt::format("{} holds {:.0f} numbers, but {} describes a model of at least {:.0f}; {}",
                                files.name(), present, plan.description, plan.least_parameters, plan.remedy));
}

/// As the model multiplies with it: [rows, cols] of the whole tensor, and then the part that is wanted.
StoredMatrix matrix_of(const std::byte* data, NumberType type, const Weight& value,
                       const TensorPlace& place) {
  const int64_t cols = value.cols() * place.parts;
  const bool transposed = place.layout == Layout::kTransposed;
  const StoredMatrix stored{.data = data,
                            .type = type,
                            .rows = transposed ? cols : value.rows(),
                            .cols = transposed ? value.rows() : cols,
                            .row_stride = transposed ? value.rows() : cols};
  return (transposed ? stored.transposed() : stored)
      .columns_between(place.part * value.cols(), (place.part + 1) * value.cols());
}

/// How many of `count` numbers are infinite or not a number: those whose exponent has all its bits set.
template <class Bits>
int64_t with_all_bits(const std::byte* numbers, int64_t count, Bits exponent) {
  int64_t found = 0;
  constexpr int64_t kAtOnce = 1 << 15;  // a counter of Bits can hold it, so that the compiler's loop is short
  for (int64_t begin = 0; begin < count; begin += kAtOnce) {
    Bits some = 0;
    for (int64_t i = begin; i < std::min(count, begin + kAtOnce); ++i) {
      Bits bits = 0;
      std::memcpy(&bits, numbers + i * static_cast<int64_t>(sizeof bits), sizeof bits);
      some = static_cast<Bits>(some + ((bits & exponent) == exponent ? 1 : 0));
    }
    found += some;
  }
  return found;
}

int64_t not_finite(const StoredMatrix& matrix) {
  // In the order of memory: along the side whose stride is 1.
  const StoredMatrix m = matrix.col_stride == 1 ? matrix : matrix.transposed();
  const int64_t rows_at_once = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, m.cols));
  std::atomic<int64_t> bad = 0;
  parallel_for((m.rows + rows_at_once - 1) / rows_at_once, [&](int64_t task) {
    const int64_t begin = task * rows_at_once, end = std::min(m.rows, begin + rows_at_once);
    int64_t here = 0;
    for (int64_t i = begin; i < end; ++i) {
      here += m.type == NumberType::kFloat32 ? with_all_bits<uint32_t>(m.at(i, 0), m.cols, 0x7F800000u)
                                             : with_all_bits<uint16_t>(m.at(i, 0), m.cols, uint16_t{0x7F80});
    }
    bad += here;
  });
  return bad;
}

/// Gives a parameter its tensor, or says why not.
void read_parameter(const WeightFiles& files, const std::string& tensor, const TensorPlace& place,
                    Parameter& parameter, Differences& differences) {
  const WeightTensor& found = files.tensor(tensor);
  const std::vector<int64_t> expected = shape_in_file(parameter.value, place);
  if (found.shape != expected) {
    differences.other(fmt::format("shape of {}: expected [{}], got [{}]", tensor, fmt::join(expected, ","),
                                  fmt::join(found.shape, ",")));
    return;
  }
  if (!found.numbers) {
    differences.other(fmt::format("type of {}: expected F32, F16 or BF16, got {}", tensor, found.type));
    return;
  }
  int64_t bad = 0;
  if (found.source && place.layout != Layout::kVector && place.parts == 1) {
    bad = found.source->count_not_finite();
    parameter.value = Weight(parameter.value.rows(), parameter.value.cols(), found.source,
                             place.layout == Layout::kTransposed);
  } else {
    StoredNumbers numbers = found.numbers();
    parameter.value = Weight(matrix_of(numbers.data, numbers.type, parameter.value, place),
                             std::move(numbers.keeper), numbers.in_file);
    bad = not_finite(parameter.value.stored());
  }
  parameter.changed();
  if (bad > 0) {
    differences.other(
        fmt::format("not finite: {} of {} numbers of {} (the training diverged, or the file is damaged)", bad,
                    parameter.value.size(), tensor));
  }
}

/// The first of the place's names that is there, under the first prefix that it has; empty: none.
std::string find_tensor(const WeightFiles& files, const std::vector<std::string>& prefixes,
                        const TensorPlace& place) {
  for (const std::string& name : place.names) {
    for (const std::string& prefix : prefixes) {
      if (files.contains(prefix + name)) return prefix + name;
    }
  }
  return {};
}

std::string without_prefix(const std::string& tensor, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    if (!prefix.empty() && tensor.starts_with(prefix)) return tensor.substr(prefix.size());
  }
  return tensor;
}

}  // namespace

std::string tensor_of(const WeightFiles& files, const FolderPlan& plan, std::string_view parameter) {
  return find_tensor(files, plan.prefixes, plan.place(parameter));
}

std::string write_weights(const Model& model,
                          const std::function<TensorPlace(std::string_view parameter)>& place_of) {
  std::vector<NamedTensor> tensors;
  std::vector<std::unique_ptr<Tensor>> transposed;  // alive until the file is written
  model.visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    const TensorPlace place = place_of(name);
    MH_ASSERT(place.parts == 1);
    const ConstMatrixView value = parameter.value.view();
    NamedTensor tensor{
        .name = place.names.front(), .shape = shape_in_file(parameter.value, place), .data = value};
    if (place.layout == Layout::kTransposed) {
      const StoredMatrix turned = StoredMatrix::of(value).transposed();
      transposed.push_back(std::make_unique<Tensor>(turned.rows, turned.cols));
      Tensor& to = *transposed.back();
      constexpr int64_t kBlock = 32;  // both sides stay within the cache
      for (int64_t j = 0; j < to.cols(); j += kBlock) {
        const int64_t count = std::min(kBlock, to.cols() - j);
        for (int64_t i = 0; i < to.rows(); ++i) turned.read_row(i, j, count, to.view().row(i) + j);
      }
      tensor.data = std::span<const float>(to.data(), static_cast<size_t>(to.size()));
    } else if (place.layout == Layout::kVector) {
      tensor.data = std::span<const float>(value.data, static_cast<size_t>(value.size()));
    }
    tensors.push_back(std::move(tensor));
  }));
  return write_safetensors(tensors, {{"format", "pt"}});  // transformers asks for "format"
}

std::unique_ptr<Model> make_model(const WeightFiles& files, const FolderPlan& plan) {
  refuse_far_too_large(files, plan);
  return plan.make(files);
}

void read_weights(const WeightFiles& files, const FolderPlan& plan, Model& model) {
  Differences differences;
  std::set<std::string> used;
  model.visit([&](const std::string& name, Parameter& parameter) {
    const TensorPlace place = plan.place(name);
    const std::string tensor = find_tensor(files, plan.prefixes, place);
    if (!tensor.empty()) {
      used.insert(tensor);
      read_parameter(files, tensor, place, parameter, differences);
    } else if (!place.may_be_missing) {
      differences.missing(plan.prefixes.front() + place.names.front());
    }
  });
  for (const auto& [tensor, stored] : files.tensors()) {
    if (used.contains(tensor)) continue;
    if (!plan.no_weight || !plan.no_weight(without_prefix(tensor, plan.prefixes), files, model, differences))
      differences.unused(tensor);
  }
  differences.throw_if_any(files.name(), plan.description, plan.remedy);
}

std::unique_ptr<Model> read_weights(const WeightFiles& files, const FolderPlan& plan) {
  std::unique_ptr<Model> model = make_model(files, plan);
  read_weights(files, plan, *model);
  return model;
}

}  // namespace mh

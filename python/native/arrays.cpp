#include "arrays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "errors.h"
#include "multihead/base/error.h"

namespace mh::python {
namespace {

using Code = nb::dlpack::dtype_code;

bool is(const nb::dlpack::dtype& type, Code code, int bits) {
  return type.code == static_cast<uint8_t>(code) && type.bits == bits && type.lanes == 1;
}

std::string name_of(const nb::dlpack::dtype& type) {
  const char* kind = "numbers";
  switch (static_cast<Code>(type.code)) {
    case Code::Int:
      kind = "int";
      break;
    case Code::UInt:
      kind = "uint";
      break;
    case Code::Float:
      kind = "float";
      break;
    case Code::Bfloat:
      kind = "bfloat";
      break;
    case Code::Complex:
      kind = "complex";
      break;
    case Code::Bool:
      return "bool";
    default:
      break;
  }
  return fmt::format("{}{}", kind, static_cast<int>(type.bits));
}

float from_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// IEEE 754 binary16.
float from_float16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0) {  // zero and subnormal numbers: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

int64_t product(const std::vector<int64_t>& sizes, size_t begin, size_t end) {
  int64_t all = 1;
  for (size_t i = begin; i < end; ++i) {
    if (__builtin_mul_overflow(all, sizes[i], &all))
      throw ShapeError(fmt::format("{} has more numbers than there can be", shape_text(sizes)));
  }
  return all;
}

/// Calls visit(place) for every number, place its distance from the first, in the order of the axes.
template <class Visit>
void for_each_number(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, Visit&& visit) {
  if (product(shape, 0, shape.size()) == 0) return;
  std::vector<int64_t> index(shape.size(), 0);
  int64_t place = 0;
  for (;;) {
    visit(place);
    size_t axis = shape.size();
    for (;; --axis) {
      if (axis == 0) return;
      place += strides[axis - 1];
      if (++index[axis - 1] < shape[axis - 1]) break;
      place -= strides[axis - 1] * shape[axis - 1];
      index[axis - 1] = 0;
    }
  }
}

template <class Stored, class Convert>
std::vector<float> converted(const void* data, const std::vector<int64_t>& shape,
                             const std::vector<int64_t>& strides, const Convert& convert) {
  std::vector<float> numbers;
  numbers.reserve(static_cast<size_t>(product(shape, 0, shape.size())));
  const auto* first = static_cast<const Stored*>(data);
  for_each_number(shape, strides, [&](int64_t place) { numbers.push_back(convert(first[place])); });
  return numbers;
}

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i)
    strides[i - 2] = strides[i - 1] * std::max<int64_t>(1, shape[i - 1]);
  return strides;
}

std::string expected_numbers(const std::string& name, const std::string& type) {
  return fmt::format("`{}`: expected float32 (or float64, float16, bfloat16, which are converted), got {}",
                     name, type);
}

/// What has no DLPack: another object, or an array of what DLPack does not know, such as big-endian numbers.
[[noreturn]] void refuse(nb::handle array, const std::string& name) {
  if (nb::hasattr(array, "dtype") && nb::hasattr(array, "shape")) {
    const nb::object numbers = array.attr("dtype");
    const std::string type = nb::str(nb::handle(numbers)).c_str();
    const bool swapped = type.starts_with('>') || type.starts_with('<');
    throw ArgumentTypeError(
        expected_numbers(name, fmt::format("{}{}; give {}.astype('float32')", type,
                                           swapped ? ", in the byte order of another machine" : "", name)));
  }
  const std::string type = nb::cast<std::string>(nb::handle(array.type()).attr("__name__"));
  throw ArgumentTypeError(
      fmt::format("`{}`: expected an array such as numpy's or torch's, got {}", name, type));
}

/// The stride of axes that can be walked as one, from the innermost out; none when they cannot.
std::optional<int64_t> joint_stride(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                                    size_t begin, size_t end) {
  std::optional<int64_t> innermost;
  int64_t expected = 0;
  for (size_t i = end; i > begin; --i) {
    if (shape[i - 1] == 1) continue;
    if (!innermost) {
      innermost = strides[i - 1];
    } else if (strides[i - 1] != expected) {
      return std::nullopt;
    }
    expected = strides[i - 1] * shape[i - 1];
  }
  return innermost.value_or(0);
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

FloatArray::FloatArray(nb::handle array, std::string name) : name_(std::move(name)) {
  if (!nb::try_cast(nb::borrow(array), array_)) refuse(array, name_);
  if (array_.device_type() != nb::device::cpu::value)
    throw UsageError(fmt::format("`{}` is not in the memory of the CPU; give {}.cpu()", name_, name_));
  for (size_t i = 0; i < array_.ndim(); ++i) {
    shape_.push_back(static_cast<int64_t>(array_.shape(i)));
    strides_.push_back(array_.stride(i));
  }
  const nb::dlpack::dtype type = array_.dtype();
  data_ = static_cast<const float*>(array_.data());
  if (is(type, Code::Float, 32)) return;
  const void* data = array_.data();
  if (is(type, Code::Float, 64)) {
    converted_ = converted<double>(data, shape_, strides_, [](double x) { return static_cast<float>(x); });
  } else if (is(type, Code::Float, 16)) {
    converted_ = converted<uint16_t>(data, shape_, strides_, from_float16);
  } else if (is(type, Code::Bfloat, 16)) {
    converted_ = converted<uint16_t>(data, shape_, strides_, from_bfloat16);
  } else {
    throw UsageError(expected_numbers(name_, name_of(type)));
  }
  data_ = converted_.data();
  strides_ = row_major(shape_);
}

std::string FloatArray::shape_text() const {
  return python::shape_text(shape_);
}

ConstMatrixView FloatArray::matrix(const std::vector<size_t>& axes, size_t columns) {
  std::vector<int64_t> shape, strides;
  for (const size_t axis : axes) {
    shape.push_back(shape_[axis]);
    strides.push_back(strides_[axis]);
  }
  const size_t split = shape.size() - columns;
  const int64_t rows = product(shape, 0, split), cols = product(shape, split, shape.size());
  product(shape, 0, shape.size());
  if (rows == 0 || cols == 0) return {nullptr, rows, cols};
  const auto inside = joint_stride(shape, strides, split, shape.size());
  auto between = joint_stride(shape, strides, 0, split);
  if (rows == 1) between = cols;
  if (inside && (*inside == 1 || cols == 1) && between && *between >= cols)
    return {data_, rows, cols, *between};
  auto& copy = copies_.emplace_back();
  copy.reserve(static_cast<size_t>(rows * cols));
  for_each_number(shape, strides, [&](int64_t place) { copy.push_back(data_[place]); });
  return {copy.data(), rows, cols};
}

std::vector<float> FloatArray::flat() const {
  std::vector<float> numbers;
  for_each_number(shape_, strides_, [&](int64_t place) { numbers.push_back(data_[place]); });
  return numbers;
}

NumpyFloats numpy_copy(ConstMatrixView numbers) {
  AlignedBuffer<float> copy(numbers.size());
  for (int64_t i = 0; i < numbers.rows; ++i)
    std::copy_n(numbers.row(i), numbers.cols, copy.data() + i * numbers.cols);
  return numpy_of(std::move(copy), {numbers.rows, numbers.cols});
}

NumpyConstFloats numpy_view(ConstMatrixView numbers, nb::handle owner) {
  const size_t shape[] = {static_cast<size_t>(numbers.rows), static_cast<size_t>(numbers.cols)};
  const int64_t strides[] = {numbers.stride, 1};
  return NumpyConstFloats(numbers.data, 2, shape, owner, strides);
}

}  // namespace mh::python

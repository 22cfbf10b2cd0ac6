// Arrays of Python as memory of the library, and back. Whatever has DLPack or the buffer protocol is an array: numpy's, torch's, ...
//
// float32 is read where it lies, whatever its strides. float64, float16 and bfloat16 are converted to float32. Everything else is
// refused with the remedy, and so are arrays that are not in the memory of the CPU.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/aligned.h"
#include "multihead/base/matrix_view.h"

namespace mh::python {

namespace nb = nanobind;

/// numpy's array of float32.
using NumpyFloats = nb::ndarray<nb::numpy, float>;
using NumpyConstFloats = nb::ndarray<nb::numpy, const float>;

/// float32 numbers that Python owns, or a converted copy.
class FloatArray {
 public:
  /// name: what errors call it. Throws ArgumentTypeError on what is no array, UsageError on another type of numbers.
  FloatArray(nb::handle array, std::string name);

  const std::string& name() const { return name_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  size_t dimensions() const { return shape_.size(); }
  int64_t size(size_t axis) const { return shape_[axis]; }
  /// "[2, 3]".
  std::string shape_text() const;
  /// The axes in another order, of which the last `columns` are the columns of a matrix and the others its rows. Reads them where
  /// they lie if they are rows of one stride, and makes a copy otherwise.
  ConstMatrixView matrix(const std::vector<size_t>& axes, size_t columns);
  /// All numbers in their order.
  std::vector<float> flat() const;

 private:
  std::string name_;
  nb::ndarray<nb::ro> array_;  // keeps the memory
  std::vector<float> converted_;
  std::vector<std::vector<float>> copies_;
  const float* data_ = nullptr;
  std::vector<int64_t> shape_, strides_;  // strides in numbers
};

/// "[2, 3]".
std::string shape_text(const std::vector<int64_t>& shape);

/// An array of that shape that owns the numbers, a buffer or a tensor. REQUIRES: the lock is held.
template <class Numbers>
NumpyFloats numpy_of(Numbers numbers, const std::vector<int64_t>& shape) {
  auto owned = std::make_unique<Numbers>(std::move(numbers));
  float* data = owned->data();
  const nb::capsule owner(owned.release(), [](void* held) noexcept { delete static_cast<Numbers*>(held); });
  const std::vector<size_t> sizes(shape.begin(), shape.end());
  return NumpyFloats(data, sizes.size(), sizes.data(), owner);
}
/// The same of a copy; [rows, columns].
NumpyFloats numpy_copy(ConstMatrixView numbers);
/// A read-only look at memory that `owner` keeps.
NumpyConstFloats numpy_view(ConstMatrixView numbers, nb::handle owner);

}  // namespace mh::python

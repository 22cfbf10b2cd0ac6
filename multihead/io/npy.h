// NumPy's .npy, version 1.0: one array of float32, int32 or int64, little-endian, in C order. Booleans are
// read, too, and float64, NumPy's own choice, as float32.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mh {

struct NpyArray {
  std::vector<int64_t> shape;  // () for a single number
  std::variant<std::vector<float>, std::vector<int32_t>, std::vector<int64_t>, std::vector<bool>> data;
};

/// Returns the bytes of a file that np.load opens, the same bytes as np.save writes. Throws ShapeError
/// unless the product of the shape is data.size().
std::string write_npy(std::span<const int64_t> shape, std::span<const float> data);
std::string write_npy(std::span<const int64_t> shape, std::span<const int32_t> data);
std::string write_npy(std::span<const int64_t> shape, std::span<const int64_t> data);

/// Reads what write_npy writes, booleans, and float64, rounded to the nearest float32. Throws FormatError (starting
/// with `name`) on another version, type or order, a header that is not the dictionary of the format, and
/// data that is longer or shorter than the shape says.
NpyArray read_npy(std::string_view bytes, std::string_view name);

}  // namespace mh

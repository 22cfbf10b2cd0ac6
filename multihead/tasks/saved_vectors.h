// Vectors of lines that were saved as a .npy file, e.g. by `multihead embed -o FILE --format npy`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "multihead/tensor/tensor.h"

namespace mh {

/// What saved vectors must be, to stand for lines that a model embeds.
struct VectorsOf {
  std::string lines_name;  // what errors call the lines
  int64_t lines = 0;
  int64_t dimension = 0;  // numbers of a vector of the model
};

/// Returns the vectors, [lines, dimension]. Throws FileError, and FormatError in one line on what is no such array: of
/// another type or shape, of another model's dimension, with more or fewer vectors than lines, or with numbers that
/// are not finite.
Tensor read_vectors(const std::filesystem::path& path, const VectorsOf& expected);

}  // namespace mh

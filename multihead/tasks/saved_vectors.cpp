#include "multihead/tasks/saved_vectors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/npy.h"

namespace mh {

Tensor read_vectors(const std::filesystem::path& path, const VectorsOf& expected) {
  const std::string name = path.string();
  const NpyArray array = read_npy(read_file(path), name);
  const auto* numbers = std::get_if<std::vector<float>>(&array.data);
  if (numbers == nullptr || array.shape.size() != 2) {
    throw FormatError(fmt::format(
        "{}: expected vectors, floating point [lines, {}], got {} of shape [{}]", name, expected.dimension,
        numbers == nullptr ? "integers" : "floating point", fmt::join(array.shape, ", ")));
  }
  const int64_t rows = array.shape[0], cols = array.shape[1];
  if (cols != expected.dimension) {
    throw FormatError(
        fmt::format("{}: its vectors have {} numbers, those of the model {}; name the model that made them",
                    name, cols, expected.dimension));
  }
  if (rows != expected.lines) {
    throw FormatError(fmt::format("{} has {} vector{}, but {} has {} line{}; there must be one for each",
                                  name, rows, rows == 1 ? "" : "s", expected.lines_name, expected.lines,
                                  expected.lines == 1 ? "" : "s"));
  }
  Tensor vectors(rows, cols);
  std::copy(numbers->begin(), numbers->end(), vectors.data());
  const auto wrong =
      std::find_if(numbers->begin(), numbers->end(), [](float number) { return !std::isfinite(number); });
  if (wrong != numbers->end()) {
    throw FormatError(fmt::format("{}: vector {} has numbers that are not finite; make the file again", name,
                                  (wrong - numbers->begin()) / cols + 1));
  }
  return vectors;
}

}  // namespace mh

// Changes the tensors of a model.safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/io/safetensors.h"

namespace mh::test {

struct EditedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> data;
};

/// Writes the file anew, in float32, with the tensors that `change` left there.
inline void edit_weights(const std::filesystem::path& file,
                         const std::function<void(std::vector<EditedTensor>&)>& change) {
  std::vector<EditedTensor> tensors;
  {
    const auto before = SafetensorsFile::open(file);
    for (const TensorEntry& entry : before.entries())
      tensors.push_back({entry.name, entry.shape, before.floats(entry.name)});
  }
  change(tensors);
  std::vector<NamedTensor> named;
  for (const EditedTensor& tensor : tensors)
    named.push_back(
        {.name = tensor.name, .shape = tensor.shape, .data = std::span<const float>(tensor.data)});
  write_file_atomically(file, write_safetensors(named, {{"format", "pt"}}));
}

/// Sets number i of every tensor whose name ends with `ending` to value(i).
inline void set_tensors(const std::filesystem::path& file, const std::string& ending,
                        const std::function<float(size_t)>& value) {
  size_t found = 0;
  edit_weights(file, [&](std::vector<EditedTensor>& tensors) {
    for (EditedTensor& tensor : tensors) {
      if (!tensor.name.ends_with(ending)) continue;
      ++found;
      for (size_t i = 0; i < tensor.data.size(); ++i) tensor.data[i] = value(i);
    }
  });
  if (found == 0) throw std::logic_error("no tensor's name ends with " + ending);
}

/// Finite numbers of both signs that overflow in the next product: what a damaged file may hold.
inline float huge(size_t i) {
  return i % 2 == 0 ? 3e38f : -3e38f;
}

}  // namespace mh::test

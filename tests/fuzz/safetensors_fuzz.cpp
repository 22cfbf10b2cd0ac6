// The entry point of the fuzzer for safetensors; scripts/fuzz builds and runs it. A file is tensors or an error of
// one line, and what was read can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/int8_matrices.h"
#include "multihead/folders/tensor_files.h"
#include "multihead/io/safetensors.h"
#include "tests/fuzz/one_line.h"

namespace mh {
namespace {

/// The tensors of the types that are written, and all metadata.
void write_again(const SafetensorsFile& file) {
  std::vector<NamedTensor> tensors;
  std::list<std::vector<float>> floats;  // a list: what is in it stays where it is
  std::list<std::vector<int64_t>> integers;
  for (const TensorEntry& entry : file.entries()) {
    NamedTensor tensor{.name = entry.name, .shape = entry.shape, .data = {}};
    if (entry.dtype == DType::kF32) {
      tensor.data = std::span<const float>(floats.emplace_back(file.floats(entry.name)));
    } else if (entry.dtype == DType::kI64) {
      tensor.data = std::span<const int64_t>(integers.emplace_back(file.integers(entry.name)));
    } else {
      continue;
    }
    tensors.push_back(std::move(tensor));
  }
  const SafetensorsFile again =
      SafetensorsFile::from_bytes(write_safetensors(tensors, file.metadata()), "written");
  if (again.metadata() != file.metadata() || again.entries().size() != tensors.size()) std::abort();
  for (const NamedTensor& tensor : tensors) {
    if (again.shape(tensor.name) != tensor.shape || again.bytes(tensor.name) != file.bytes(tensor.name))
      std::abort();
  }
}

void try_file(const std::string& bytes) {
  reads([&] {
    const auto file = SafetensorsFile::from_bytes(bytes, "file.safetensors");
    for (const TensorEntry& entry : file.entries()) {
      if (file.bytes(entry.name).size() != entry.end - entry.begin) std::abort();
      reads([&] { file.floats(entry.name); });
      reads([&] { file.integers(entry.name); });
    }
    write_again(file);
    const TensorFiles weights(SafetensorsFile::from_bytes(bytes, "file.safetensors"), "file.safetensors");
    for (const auto& tensor : weights.tensors()) reads([&] { weights.floats(tensor.first); });
    reads([&] {
      const TensorFiles matrices = with_int8_matrices(weights);
      for (const auto& tensor : matrices.tensors()) reads([&] { matrices.floats(tensor.first); });
    });
  });
}

/// The same bytes with a header that ends where its JSON seems to end: changes of a header's length would hardly
/// ever be right otherwise.
std::string with_length(std::string bytes) {
  const size_t end = bytes.rfind('}');
  if (end == std::string::npos || end < 8) return bytes;
  const uint64_t length = end + 1 - 8;
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes;
}

}  // namespace
}  // namespace mh

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  mh::try_file(bytes);
  mh::try_file(mh::with_length(bytes));
  return 0;
}

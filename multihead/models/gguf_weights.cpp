#include "multihead/models/gguf_weights.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace mh {
namespace {

std::vector<float> with_rows_put_back(const std::vector<float>& stored, int64_t rows, int64_t heads) {
  const int64_t cols = static_cast<int64_t>(stored.size()) / rows;
  const int64_t size = rows / heads, half = size / 2;
  std::vector<float> numbers(stored.size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t j = row % size / 2, s = row % 2;
    const int64_t to = row / size * size + s * half + j;
    std::copy_n(stored.begin() + row * cols, cols, numbers.begin() + to * cols);
  }
  return numbers;
}

}  // namespace

WeightFiles gguf_weights(const GgufFile& file, const GgufHeads& heads) {
  WeightFiles::Tensors tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    WeightTensor found{.shape = tensor.shape,
                       .type = gguf_type_name(static_cast<uint32_t>(tensor.type)),
                       .numbers = nullptr,
                       .not_finite = [file, &tensor] { return file.not_finite(tensor); }};
    const bool query = tensor.name.find(".attn_q.") != std::string_view::npos;
    const bool key = tensor.name.find(".attn_k.") != std::string_view::npos;
    const int64_t rows = tensor.shape.front(), blocks = query ? heads.heads : heads.key_heads;
    if ((query || key) && rows % (2 * blocks) == 0) {  // otherwise its shape is refused
      found.numbers = [file, &tensor, rows, blocks] {
        return StoredNumbers::of(with_rows_put_back(file.floats(tensor), rows, blocks));
      };
    } else if (tensor.type == GgufType::kF32 || tensor.type == GgufType::kBF16) {
      const NumberType type = tensor.type == GgufType::kF32 ? NumberType::kFloat32 : NumberType::kBFloat16;
      found.numbers = [file, &tensor, type] {
        return StoredNumbers{.data = tensor.bytes.data(), .type = type, .keeper = file.keeper()};
      };
    } else {
      found.numbers = [file, &tensor] { return StoredNumbers::of(file.floats(tensor)); };
    }
    tensors.emplace(std::string(tensor.name), std::move(found));
  }
  return WeightFiles(std::move(tensors), file.name());
}

}  // namespace mh

#include "multihead/folders/gguf_weights.h"

#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/platform.h"

namespace mh {
namespace {

/// The row of the file that is row i of the model; not set: the same.
using RowOrder = std::function<int64_t(int64_t row)>;

/// The order of the rows of a tensor. Where its shape does not fit the heads it is left as it is, and refused later.
RowOrder order_of(const GgufTensor& tensor, GgufArchitecture::Rows rows, const GgufHeads& heads) {
  const int64_t count = tensor.shape.front();
  const auto is = [&](const char* module) { return tensor.name.find(module) != std::string_view::npos; };
  switch (rows) {
    case GgufArchitecture::Rows::kAsInModel:
      return nullptr;
    case GgufArchitecture::Rows::kNeighbours: {
      const bool query = is(".attn_q."), key = is(".attn_k.");
      const int64_t blocks = query ? heads.heads : heads.key_heads;
      if ((!query && !key) || count % (2 * blocks) != 0) return nullptr;
      return [size = count / blocks](int64_t row) {
        const int64_t half = size / 2, in_head = row % size;
        return row - in_head + 2 * (in_head % half) + in_head / half;
      };
    }
    case GgufArchitecture::Rows::kByPart:
      break;
  }
  if (!is(".attn_qkv.") || count % (3 * heads.heads) != 0) return nullptr;
  return [size = count / (3 * heads.heads), heads = heads.heads](int64_t row) {
    const int64_t head = row / (3 * size), part = row / size % 3;
    return (part * heads + head) * size + row % size;
  };
}

/// The rows of a matrix [rows, cols] in the order of the model.
class GgufNumbers : public NumberSource {
 public:
  /// `tensor` is one of the file.
  GgufNumbers(GgufFile file, const GgufTensor& tensor, RowOrder order)
      : file_(std::move(file)), tensor_(tensor), order_(std::move(order)) {
    const auto type = gguf_type_facts(static_cast<uint32_t>(tensor.type))->blocks;
    if (!type) return;
    const int64_t rows = tensor.shape.front();
    blocks_ = {.data = tensor.bytes.data(), .type = *type, .rows = rows, .cols = tensor.elements() / rows};
    for (int64_t row = 0; order_ && row < rows; ++row) blocks_->order.push_back(order_(row));
  }

  void read_rows(int64_t begin, int64_t end, float* to) const override {
    const int64_t rows = tensor_.shape.front();
    const auto cols = static_cast<size_t>(tensor_.elements() / rows);
    const size_t bytes = tensor_.bytes.size() / static_cast<size_t>(rows);  // of a row
    for (int64_t row = begin; row < end; ++row, to += cols) {
      const auto in_file = static_cast<size_t>(order_ ? order_(row) : row);
      read_gguf_blocks(tensor_.type, tensor_.bytes.subspan(in_file * bytes, bytes), {to, cols});
    }
  }
  const BlockMatrix* blocks() const override { return blocks_ ? &*blocks_ : nullptr; }
  void release() const override {
    if (file_.is_mapped()) release_mapped(tensor_.bytes.data(), tensor_.bytes.size());
  }

 private:
  GgufFile file_;
  const GgufTensor& tensor_;
  RowOrder order_;
  std::optional<BlockMatrix> blocks_;
};

/// Of tensors whose numbers are read where they lie, if their rows are in order.
std::optional<NumberType> gguf_kept_type(GgufType type) {
  switch (type) {
    case GgufType::kF32:
      return NumberType::kFloat32;
    case GgufType::kBF16:
      return NumberType::kBFloat16;
    case GgufType::kF16:
      return NumberType::kFloat16;
    default:
      return std::nullopt;
  }
}

}  // namespace

TensorFiles gguf_weights(const GgufFile& file, const GgufArchitecture& architecture, const GgufHeads& heads) {
  TensorFiles::Tensors tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    RowOrder order = order_of(tensor, architecture.rows, heads);
    const bool plus_one = architecture.norms_plus_one && tensor.name.ends_with("norm.weight");
    const bool is_vector = tensor.shape.size() == 1;
    FileTensor found{.shape = tensor.shape,
                     .type = gguf_type_name(static_cast<uint32_t>(tensor.type)),
                     .bytes = std::ssize(tensor.bytes),
                     .numbers = nullptr,
                     .not_finite = [file, &tensor] { return file.not_finite(tensor); }};
    if (plus_one) {
      found.numbers = [file, &tensor] {
        std::vector<float> gains = file.floats(tensor);
        for (float& gain : gains) gain -= 1;
        return StoredNumbers::of(std::move(gains));
      };
    } else if (const std::optional<NumberType> type = gguf_kept_type(tensor.type); type && !order) {
      found.numbers = [file, &tensor, type] {
        return StoredNumbers{
            .data = tensor.bytes.data(), .type = *type, .keeper = file.keeper(), .in_file = file.is_mapped()};
      };
    } else if (order && is_vector && tensor.type != GgufType::kF32) {
      // A block holds numbers of several places, which change.
    } else if (order || tensor.shape.size() == 2) {
      found.convert(std::make_shared<GgufNumbers>(file, tensor, std::move(order)));
    } else {
      found.numbers = [file, &tensor] { return StoredNumbers::of(file.floats(tensor)); };
    }
    tensors.emplace(std::string(tensor.name), std::move(found));
  }
  return TensorFiles(std::move(tensors), file.name());
}

}  // namespace mh

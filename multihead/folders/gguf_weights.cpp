#include "multihead/folders/gguf_weights.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/file.h"

namespace mh {
namespace {

/// The rows of a matrix [rows, cols] in the order of the model.
class GgufNumbers : public NumberSource {
 public:
  /// heads: whose rows are put back; 0: the rows are in order. `tensor` is one of the file.
  GgufNumbers(GgufFile file, const GgufTensor& tensor, int64_t heads)
      : file_(std::move(file)), tensor_(tensor), head_size_(heads > 0 ? tensor.shape.front() / heads : 0) {}

  void read_rows(int64_t begin, int64_t end, float* to) const override {
    const int64_t rows = tensor_.shape.front();
    const auto cols = static_cast<size_t>(tensor_.elements() / rows);
    const size_t bytes = tensor_.bytes.size() / static_cast<size_t>(rows);  // of a row
    for (int64_t row = begin; row < end; ++row, to += cols) {
      read_gguf_blocks(tensor_.type, tensor_.bytes.subspan(static_cast<size_t>(in_file(row)) * bytes, bytes),
                       {to, cols});
    }
  }
  void release() const override {
    if (file_.is_mapped()) release_mapped(tensor_.bytes.data(), tensor_.bytes.size());
  }

 private:
  int64_t in_file(int64_t row) const {
    if (head_size_ == 0) return row;
    const int64_t half = head_size_ / 2, in_head = row % head_size_;
    const int64_t j = in_head % half, s = in_head / half;
    return row - in_head + 2 * j + s;
  }

  GgufFile file_;
  const GgufTensor& tensor_;
  int64_t head_size_;
};

}  // namespace

TensorFiles gguf_weights(const GgufFile& file, const GgufHeads& heads) {
  TensorFiles::Tensors tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    const bool query = tensor.name.find(".attn_q.") != std::string_view::npos;
    const bool key = tensor.name.find(".attn_k.") != std::string_view::npos;
    const int64_t rows = tensor.shape.front(), blocks = query ? heads.heads : heads.key_heads;
    const bool put_back = (query || key) && rows % (2 * blocks) == 0;  // otherwise its shape is refused
    FileTensor found{.shape = tensor.shape,
                     .type = gguf_type_name(static_cast<uint32_t>(tensor.type)),
                     .numbers = nullptr,
                     .not_finite = [file, &tensor] { return file.not_finite(tensor); }};
    if (!put_back && (tensor.type == GgufType::kF32 || tensor.type == GgufType::kBF16)) {
      const NumberType type = tensor.type == GgufType::kF32 ? NumberType::kFloat32 : NumberType::kBFloat16;
      found.numbers = [file, &tensor, type] {
        return StoredNumbers{
            .data = tensor.bytes.data(), .type = type, .keeper = file.keeper(), .in_file = file.is_mapped()};
      };
    } else if (put_back && tensor.shape.size() == 1 && tensor.type != GgufType::kF32) {
      // A block holds numbers of several places, which change.
    } else if (put_back || tensor.shape.size() == 2) {
      found.convert(std::make_shared<GgufNumbers>(file, tensor, put_back ? blocks : 0));
    } else {
      found.numbers = [file, &tensor] { return StoredNumbers::of(file.floats(tensor)); };
    }
    tensors.emplace(std::string(tensor.name), std::move(found));
  }
  return TensorFiles(std::move(tensors), file.name());
}

}  // namespace mh

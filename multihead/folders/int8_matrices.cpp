#include "multihead/folders/int8_matrices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/platform.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

constexpr int64_t kInt8Block = block_layout(BlockType::kQ8_0).numbers;

/// The float16 of all scales; nothing when one of them is none.
std::optional<std::vector<uint16_t>> as_float16(const std::vector<float>& scales) {
  std::vector<uint16_t> halves;
  for (const float scale : scales) {
    halves.push_back(std::isfinite(scale) ? to_float16(scale) : uint16_t{0x7C00});
    if (from_float16(halves.back()) != scale) return std::nullopt;
  }
  return halves;
}

/// Blocks of Q8_0, each its scale and its integers. group: numbers of a scale, a multiple of a block's.
std::vector<std::byte> q8_0_blocks(const std::byte* integers, std::span<const uint16_t> scales,
                                   int64_t group) {
  constexpr BlockLayout kLayout = block_layout(BlockType::kQ8_0);
  const int64_t each = group / kInt8Block;
  std::vector<std::byte> blocks(scales.size() * static_cast<size_t>(each * kLayout.bytes));
  std::byte* to = blocks.data();
  for (const uint16_t scale : scales) {
    for (int64_t i = 0; i < each; ++i, to += kLayout.bytes, integers += kInt8Block) {
      std::memcpy(to, &scale, sizeof scale);
      std::memcpy(to + sizeof scale, integers, kInt8Block);
    }
  }
  return blocks;
}

/// The rows of a matrix of integers, times their scales.
class Int8Rows final : public NumberSource {
 public:
  /// scales: as many for each row.
  Int8Rows(SafetensorsFile::Mapped integers, std::vector<float> scales, int64_t rows, int64_t cols)
      : integers_(std::move(integers)),
        scales_(std::move(scales)),
        rows_(rows),
        cols_(cols),
        group_(cols * rows / std::ssize(scales_)) {
    auto halves = group_ % kInt8Block == 0 ? as_float16(scales_) : std::nullopt;
    if (!halves) return;
    blocks_ = {.data = integers_.data, .type = BlockType::kQ8_0, .rows = rows, .cols = cols};
    if (group_ == cols) {
      blocks_->scales = *std::move(halves);
    } else {
      grouped_ = q8_0_blocks(integers_.data, *halves, group_);
      blocks_->data = grouped_.data();
      release();
    }
  }

  void read_rows(int64_t begin, int64_t end, float* to) const override {
    const std::byte* from = integers_.data + begin * cols_;
    for (int64_t group = begin * (cols_ / group_); group < end * (cols_ / group_); ++group) {
      const float scale = scales_[static_cast<size_t>(group)];
      for (int64_t j = 0; j < group_; ++j) *to++ = scale * static_cast<float>(std::bit_cast<int8_t>(*from++));
    }
  }
  const BlockMatrix* blocks() const override { return blocks_ ? &*blocks_ : nullptr; }
  void release() const override {
    if (integers_.in_file) release_mapped(integers_.data, static_cast<size_t>(rows_ * cols_));
  }

 private:
  SafetensorsFile::Mapped integers_;
  std::vector<float> scales_;
  int64_t rows_, cols_;
  int64_t group_;                   // numbers of a scale
  std::vector<std::byte> grouped_;  // of several groups in a row: the blocks, which the file does not have
  std::optional<BlockMatrix> blocks_;
};

/// The matrix that two tensors stand for. not_finite counts all numbers of a scale that is not.
FileTensor int8_matrix(const TensorFiles& files, const std::string& name, const std::string& scale_name) {
  const FileTensor &integers = files.tensor(name), &scale = files.tensor(scale_name);
  const int64_t rows = integers.shape[0], cols = integers.shape[1];
  const int64_t groups = scale.shape.size() == 2 && scale.shape[0] == rows ? scale.shape[1] : 0;
  if (groups < 1 || cols < 1 || cols % groups != 0 || rows < 1 || !scale.numbers) {
    throw FormatError(fmt::format(
        "{}: {}: expected numbers [{},1], one for each row of {} [{},{}], or [{},N] of groups in a "
        "row, got {} [{}]",
        files.name(), scale_name, rows, name, rows, cols, rows, scale.type, fmt::join(scale.shape, ",")));
  }
  FileTensor matrix{
      .shape = integers.shape,
      .type = integers.type,
      .bytes = integers.bytes + scale.bytes,
      .numbers = nullptr,
      .not_finite = [of_scale = scale.not_finite, group = cols / groups] { return group * of_scale(); }};
  matrix.convert(std::make_shared<Int8Rows>(integers.integers(), files.floats(scale_name), rows, cols));
  return matrix;
}

}  // namespace

TensorFiles with_int8_matrices(const TensorFiles& files) {
  TensorFiles::Tensors tensors = files.tensors();
  int64_t large = 0;
  for (const auto& [name, tensor] : files.tensors()) {
    const std::string scale = name + std::string(kScaleEnding);
    if (!tensor.integers || tensor.shape.size() != 2 || !files.contains(scale)) continue;
    FileTensor matrix = int8_matrix(files, name, scale);
    if (matrix.source->blocks() == nullptr) ++large;
    tensors.at(name) = std::move(matrix);
    tensors.erase(scale);
  }
  TensorFiles found(std::move(tensors), files.name());
  for (const std::string& remark : files.remarks()) found.add_remark(remark);
  if (large > 0) {
    found.add_remark(fmt::format(
        "{}: {} of the matrices of integers have scales that are no float16, or rows or groups that "
        "are no multiple of {}: they "
        "take 4 bytes a number in memory",
        files.name(), large, kInt8Block));
  }
  return found;
}

float quantise_int8_row(std::span<const float> numbers, std::span<std::byte> to) {
  float largest = 0;
  for (const float x : numbers) largest = std::max(largest, std::fabs(x));
  constexpr float kLeastFloat16 = 0x1p-24f, kLargestFloat16 = 65504;
  const uint32_t bits = std::bit_cast<uint32_t>(largest / 127);
  float scale = std::bit_cast<float>((bits + 0xFFFFu) & 0xFFFF0000u);  // 8 significant bits, as bfloat16 has
  // Below 2^-16 float16 has multiples of its least number only.
  if (scale < 0x1p-16f) scale = std::ceil(scale / kLeastFloat16) * kLeastFloat16;
  if (largest == 0) scale = 1;
  if (scale > kLargestFloat16) return std::numeric_limits<float>::infinity();
  for (size_t j = 0; j < numbers.size(); ++j)
    to[j] = std::bit_cast<std::byte>(static_cast<int8_t>(std::nearbyint(numbers[j] / scale)));
  return scale;
}

}  // namespace mh

#include "multihead/folders/low_rank_sum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/platform.h"

namespace mh {

LowRankSum::LowRankSum(FileTensor base, std::vector<float> left, std::vector<float> right)
    : base_(std::move(base)),
      left_(std::move(left)),
      right_(std::move(right)),
      rank_(std::ssize(left_) / std::max<int64_t>(1, rows())) {
  if (!base_.source) stored_ = base_.numbers();
  MH_ASSERT(rank_ > 0 && std::ssize(left_) == rows() * rank_ && std::ssize(right_) == rank_ * cols());
}

void LowRankSum::read_base(int64_t begin, int64_t end, float* to) const {
  if (base_.source) return base_.source->read_rows(begin, end, to);
  const StoredMatrix matrix{
      .data = stored_.data, .type = stored_.type, .rows = rows(), .cols = cols(), .row_stride = cols()};
  for (int64_t i = begin; i < end; ++i) matrix.read_row(i, 0, cols(), to + (i - begin) * cols());
}

void LowRankSum::read_product(int64_t row, float* to) const {
  std::fill(to, to + cols(), 0.0f);
  for (int64_t k = 0; k < rank_; ++k) {
    const float factor = left_[static_cast<size_t>(row * rank_ + k)];
    const float* const from = right_.data() + k * cols();
    for (int64_t j = 0; j < cols(); ++j) to[j] += factor * from[j];
  }
}

void LowRankSum::read_rows(int64_t begin, int64_t end, float* to) const {
  read_base(begin, end, to);
  std::vector<float> product(static_cast<size_t>(cols()));
  for (int64_t i = begin; i < end; ++i) {
    read_product(i, product.data());
    float* const row = to + (i - begin) * cols();
    for (int64_t j = 0; j < cols(); ++j) row[j] += product[static_cast<size_t>(j)];
  }
}

void LowRankSum::release() const {
  if (base_.source) return base_.source->release();
  const StoredNumbers stored = base_.numbers();
  if (stored.in_file)
    release_mapped(stored.data, static_cast<size_t>(base_.elements() * number_size(stored.type)));
}

int64_t LowRankSum::not_finite() const {
  std::vector<float> row(static_cast<size_t>(cols()));
  int64_t bad = 0;
  for (int64_t i = 0; i < rows(); ++i) {
    read_rows(i, i + 1, row.data());
    bad += std::count_if(row.begin(), row.end(), [](float number) { return !std::isfinite(number); });
  }
  release();
  return bad;
}

FileTensor tensor_of_sum(std::shared_ptr<const LowRankSum> sum) {
  FileTensor tensor{
      .shape = {sum->rows(), sum->cols()}, .type = "F32", .numbers = nullptr, .not_finite = [sum] {
        return sum->not_finite();
      }};
  tensor.convert(std::move(sum));
  return tensor;
}

}  // namespace mh

// LowRankSum: the numbers W + L R of a tensor W [rows, cols] and two narrow matrices, L [rows, r] and R [r, cols], made
// whenever they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "multihead/folders/tensor_files.h"
#include "multihead/tensor/weight.h"

namespace mh {

class LowRankSum final : public NumberSource {
 public:
  /// REQUIRES: base is a matrix of floating-point numbers, and L and R have r > 0.
  LowRankSum(FileTensor base, std::vector<float> left, std::vector<float> right);

  int64_t rows() const { return base_.shape[0]; }
  int64_t cols() const { return base_.shape[1]; }
  void read_rows(int64_t begin, int64_t end, float* to) const override;
  void release() const override;
  /// Of W, and of L R alone.
  void read_base(int64_t begin, int64_t end, float* to) const;
  void read_product(int64_t row, float* to) const;
  /// How many sums are infinite or NaN.
  int64_t not_finite() const;

 private:
  FileTensor base_;
  StoredNumbers stored_;  // of a base that has no source of its own
  std::vector<float> left_, right_;
  int64_t rank_;
};

/// A tensor that is read from a LowRankSum.
FileTensor tensor_of_sum(std::shared_ptr<const LowRankSum> sum);

}  // namespace mh

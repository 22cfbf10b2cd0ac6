// A projection in which each head reads only some columns of its input: y_i = x[:, columns_i] W_i + b_i,
// the y_i side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"

namespace mh {

/// The matrices of all heads, one below the other: weight [sum of |columns_i|, outputs], or [|columns_0|,
/// outputs] when all heads share one. It does not own the parameters.
class HeadAffine {
 public:
  /// The columns that each head reads: one list for each head, rising, not empty.
  using Columns = std::vector<std::vector<int32_t>>;

  HeadAffine() = default;
  /// bias: [1, heads * outputs], or null. REQUIRES: with a shared weight, all heads have equally many
  /// columns.
  HeadAffine(Columns columns, const Parameter* weight, const Parameter* bias);

  int heads() const { return static_cast<int>(columns_.size()); }
  int64_t outputs() const { return weight_->value.cols(); }  // of one head
  const Columns& columns() const { return columns_; }
  /// Rows [begin, end) of the weight that belong to a head.
  struct Rows {
    int64_t begin, end;
  };
  Rows rows(int head) const { return rows_[static_cast<size_t>(head)]; }
  /// Columns [begin, end) of the gathered input that belong to a head.
  Rows gathered(int head) const { return gathered_[static_cast<size_t>(head)]; }
  int64_t gathered_columns() const { return gathered_.back().end; }
  /// Whether the input needs no gathering, because the heads read all columns in order, each once.
  bool reads_in_place(int64_t input_columns) const {
    return in_place_ && gathered_columns() == input_columns;
  }

  const PackedMatrix& packed(int head) const;
  const PackedMatrix& packed_transposed(int head) const;
  const Parameter& weight() const { return *weight_; }
  const Parameter* bias() const { return bias_; }

 private:
  struct Packed {
    MadeOnce<PackedMatrix> plain, transposed;
  };
  const Packed& slot(int head) const {
    return packed_[rows_[0].end == weight_->value.rows() ? 0 : static_cast<size_t>(head)];
  }
  StoredMatrix stored(int head) const {
    return weight_->value.stored().rows_between(rows(head).begin, rows(head).end);
  }

  Columns columns_;
  std::vector<Rows> rows_, gathered_;
  std::vector<Packed> packed_;
  const Parameter* weight_ = nullptr;
  const Parameter* bias_ = nullptr;
  bool in_place_ = false;
};

/// Computes the projection: [N, K] -> [N, heads * outputs].
Var head_affine(Tape& tape, Var x, const HeadAffine& parameters);

}  // namespace mh

// PositionTable: the vectors that are added to the embeddings for the positions of tokens: sinusoids,
// learned vectors, or zeros.
#pragma once

#include <cstdint>

#include "multihead/autograd/parameter.h"
#include "multihead/nn/positions.h"

namespace mh {

class PositionTable {
 public:
  /// longest: the number of positions. offset: how many rows of the table come before that of position 0 (the tables of RoBERTa
  /// and OPT begin with two that no token uses). Of sinusoids the last of these rows is zero, for tokens without a place.
  PositionTable(Positions positions, int64_t longest, int64_t d_model, int32_t offset = 0,
                SinusoidForm form = SinusoidForm::kMarian);

  int64_t longest() const { return longest_; }
  /// The table [rows, d_model]; row_of() gives the row of a position.
  ConstMatrixView rows() const { return learned() != nullptr ? parameter_.value.view() : fixed_.view(); }
  int32_t row_of(int32_t position) const { return adds_ ? position + offset_ : 0; }
  /// Null unless the vectors are learned.
  Parameter* learned() { return parameter_.value.size() > 0 ? &parameter_ : nullptr; }
  const Parameter* learned() const { return parameter_.value.size() > 0 ? &parameter_ : nullptr; }

 private:
  int64_t longest_;
  bool adds_;
  int32_t offset_;
  Tensor fixed_;         // the sinusoids [longest + offset, d_model], or one row of zeros
  Parameter parameter_;  // [longest + offset, d_model]
};

}  // namespace mh

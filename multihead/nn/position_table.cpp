#include "multihead/nn/position_table.h"

#include "multihead/kernels/embedding.h"

namespace mh {

PositionTable::PositionTable(Positions positions, int64_t longest, int64_t d_model, int32_t offset)
    : longest_(longest),
      adds_(positions == Positions::kSinusoidal || positions == Positions::kLearned),
      offset_(positions == Positions::kLearned ? offset : 0) {
  if (positions == Positions::kLearned) {
    parameter_ = Parameter(longest + offset, d_model);
    return;
  }
  fixed_ = Tensor(adds_ ? longest : 1, d_model);
  if (adds_) sinusoids(fixed_.view());
}

}  // namespace mh

#include "multihead/nn/position_table.h"

#include "multihead/kernels/embedding.h"

namespace mh {

PositionTable::PositionTable(Positions positions, int64_t longest, int64_t d_model, int32_t offset,
                             SinusoidForm form)
    : longest_(longest),
      adds_(positions == Positions::kSinusoidal || positions == Positions::kLearned),
      offset_(adds_ ? offset : 0) {
  if (positions == Positions::kLearned) {
    parameter_ = Parameter(longest + offset, d_model);
    return;
  }
  fixed_ = Tensor(adds_ ? longest + offset : 1, d_model);
  if (!adds_) return;
  if (form == SinusoidForm::kFairseq) {
    fairseq_sinusoids(fixed_.view());
  } else {
    sinusoids(fixed_.view());
  }
  for (int64_t c = 0; offset > 0 && c < d_model; ++c) fixed_.view()(offset - 1, c) = 0;
}

}  // namespace mh

#include "multihead/autograd/mix_heads.h"

#include <algorithm>

#include "multihead/kernels/gemm.h"

namespace mh {

Var mix_heads(Tape& tape, Var x, const Parameter& mixing) {
  const int64_t heads = mixing.value.rows(), size = mixing.value.cols();
  MH_ASSERT(x.cols() == size);
  Var y = tape.make(x.rows(), heads * size, {x});
  for_row_blocks(x.rows(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* in = x.value().row(r);
      for (int64_t h = 0; h < heads; ++h) {
        const float* m = mixing.value.data() + h * size;
        float* out = y.value().row(r) + h * size;
        for (int64_t c = 0; c < size; ++c) out[c] = in[c] * m[c];
      }
    }
  });
  // dx = sum_i dy_i * m_i;  dm_i += sum over rows of dy_i * x
  tape.record(y, [&tape, x, y, heads, size, mixing = &mixing] {
    const MatrixView dy = y.gradient();
    const Tape::Target dx = x.wants_gradient() ? tape.gradient_of(x) : Tape::Target{};
    const int64_t blocks = (dy.rows + kRowsPerTask - 1) / kRowsPerTask;
    const Arena::Mark mark = tape.arena().mark();
    const MatrixView sums = tape.arena().matrix<float>(blocks, heads * size);  // merged in order
    for_row_blocks(dy.rows, [&](int64_t begin, int64_t end) {
      float* sum = sums.row(begin / kRowsPerTask);
      std::fill_n(sum, heads * size, 0.0f);
      for (int64_t r = begin; r < end; ++r) {
        const float* in = x.value().row(r);
        float* to = dx.gradient.data != nullptr ? dx.gradient.row(r) : nullptr;
        if (to != nullptr && dx.write == Write::kOverwrite) std::fill_n(to, size, 0.0f);
        for (int64_t h = 0; h < heads; ++h) {
          const float* m = mixing->value.data() + h * size;
          const float* d = dy.row(r) + h * size;
          for (int64_t c = 0; c < size; ++c) sum[h * size + c] += d[c] * in[c];
          if (to != nullptr) {
            for (int64_t c = 0; c < size; ++c) to[c] += d[c] * m[c];
          }
        }
      }
    });
    float* gradient = tape.trains() ? mixing->gradient_sum().data : nullptr;
    for (int64_t b = 0; b < blocks && gradient != nullptr; ++b) {
      for (int64_t i = 0; i < heads * size; ++i) gradient[i] += sums(b, i);
    }
    tape.arena().rewind(mark);
  });
  return y;
}

}  // namespace mh

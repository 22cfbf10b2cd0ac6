#include "multihead/autograd/normalise_heads.h"

#include <cmath>

#include "multihead/autograd/loops.h"
#include "multihead/kernels/gemm.h"

namespace mh {
namespace {

/// 1 / length(x) as the norm has it.
float inverse_length(const HeadNorm& norm, const float* x, int64_t size) {
  const float squares = dot(x, x, size);
  if (norm.kind == HeadNorm::Kind::kRms)
    return 1 / std::sqrt(squares / static_cast<float>(size) + norm.epsilon);
  return squares > 0 ? 1 / std::sqrt(squares) : 0;
}

/// The gain of each of D numbers; `each`: whether they have gains of their own.
struct Gains {
  Gains(const HeadNorm& norm, int64_t size)
      : each(norm.gain != nullptr && norm.gain->value.cols() > 1),
        row(each ? norm.gain->value.view().row(0) : nullptr),
        one(norm.gain != nullptr && !each ? norm.gain->value(0, 0) : 1) {
    MH_ASSERT(norm.gain == nullptr || norm.gain->value.size() == (each ? size : 1));
  }
  float at(int64_t c) const { return each ? row[c] : one; }

  bool each;
  const float* row;
  float one;
};

}  // namespace

Var normalise_heads(Tape& tape, Var x, int heads, const HeadNorm& norm) {
  MH_ASSERT(x.cols() % heads == 0);
  const int64_t size = x.cols() / heads;
  const Gains gains(norm, size);
  Var y = tape.make(x.rows(), x.cols(), {x});
  for_row_blocks(x.rows(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t at = 0; at < x.cols(); at += size) {
        const float* in = x.value().row(r) + at;
        float* out = y.value().row(r) + at;
        const float by = inverse_length(norm, in, size);
        for (int64_t c = 0; c < size; ++c) out[c] = gains.at(c) * by * in[c];
      }
    }
  });
  // With n = x / length and g = gain dy: dx = (g - n (n . g) s) / length, s = 1, or 1 / D of kRms;  dgain += n dy
  tape.record(y, [&tape, x, y, size, norm, gains] {
    const MatrixView dy = y.gradient();
    const float s = norm.kind == HeadNorm::Kind::kRms ? 1 / static_cast<float>(size) : 1;
    const Tape::Target dx = x.wants_gradient() ? tape.gradient_of(x) : Tape::Target{};
    const int64_t blocks = (dy.rows + kRowsPerTask - 1) / kRowsPerTask, learned = gains.each ? size : 1;
    const Arena::Mark mark = tape.arena().mark();
    const MatrixView sums = tape.arena().matrix<float>(blocks, learned);  // merged in order
    for_row_blocks(dy.rows, [&](int64_t begin, int64_t end) {
      float* sum = sums.row(begin / kRowsPerTask);
      std::fill_n(sum, learned, 0.0f);
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t at = 0; at < dy.cols; at += size) {
          const float *in = x.value().row(r) + at, *d = dy.row(r) + at;
          const float inverse = inverse_length(norm, in, size);
          float along = 0;  // n . g
          for (int64_t c = 0; c < size; ++c) {
            const float n_dy = inverse * in[c] * d[c];
            sum[gains.each ? c : 0] += n_dy;
            along += gains.at(c) * n_dy;
          }
          if (dx.gradient.data == nullptr) continue;
          float* to = dx.gradient.row(r) + at;
          for (int64_t c = 0; c < size; ++c) {
            const float share = inverse * (gains.at(c) * d[c] - s * along * inverse * in[c]);
            to[c] = dx.write == Write::kAdd ? to[c] + share : share;
          }
        }
      }
    });
    if (norm.gain != nullptr && tape.trains()) {
      const MatrixView gradient = norm.gain->gradient_sum();
      for (int64_t b = 0; b < blocks; ++b) {
        for (int64_t c = 0; c < learned; ++c) gradient(0, c) += sums(b, c);
      }
    }
    tape.arena().rewind(mark);
  });
  return y;
}

}  // namespace mh

#include "multihead/autograd/normalise_heads.h"

#include <cmath>

#include "multihead/autograd/loops.h"

namespace mh {
namespace {

/// 1 / |x|, or 0 for x = 0.
float inverse_length(const float* x, int64_t size) {
  const float squares = dot(x, x, size);
  return squares > 0 ? 1 / std::sqrt(squares) : 0;
}

}  // namespace

Var normalise_heads(Tape& tape, Var x, int heads, const Parameter* factor) {
  MH_ASSERT(x.cols() % heads == 0 && (factor == nullptr || factor->value.size() == 1));
  const int64_t size = x.cols() / heads;
  const float scaled = factor != nullptr ? factor->value(0, 0) : 1;
  Var y = tape.make(x.rows(), x.cols(), {x});
  for_row_blocks(x.rows(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t at = 0; at < x.cols(); at += size) {
        const float* in = x.value().row(r) + at;
        float* out = y.value().row(r) + at;
        const float by = scaled * inverse_length(in, size);
        for (int64_t c = 0; c < size; ++c) out[c] = by * in[c];
      }
    }
  });
  // With n = x / |x|: dx = factor (dy - n (n . dy)) / |x|;  dfactor += n . dy
  tape.record(y, [&tape, x, y, size, scaled, factor] {
    const MatrixView dy = y.gradient();
    const Tape::Target dx = x.wants_gradient() ? tape.gradient_of(x) : Tape::Target{};
    const int64_t blocks = (dy.rows + kRowsPerTask - 1) / kRowsPerTask;
    const Arena::Mark mark = tape.arena().mark();
    const MatrixView sums = tape.arena().matrix<float>(blocks, 1);  // merged in order
    for_row_blocks(dy.rows, [&](int64_t begin, int64_t end) {
      float sum = 0;
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t at = 0; at < dy.cols; at += size) {
          const float *in = x.value().row(r) + at, *d = dy.row(r) + at;
          const float inverse = inverse_length(in, size), along = inverse * dot(in, d, size);
          sum += along;
          if (dx.gradient.data == nullptr) continue;
          float* to = dx.gradient.row(r) + at;
          for (int64_t c = 0; c < size; ++c) {
            const float share = scaled * inverse * (d[c] - along * inverse * in[c]);
            to[c] = dx.write == Write::kAdd ? to[c] + share : share;
          }
        }
      }
      sums(begin / kRowsPerTask, 0) = sum;
    });
    if (factor != nullptr && tape.trains()) {
      float& gradient = *factor->gradient_sum().data;
      for (int64_t b = 0; b < blocks; ++b) gradient += sums(b, 0);
    }
    tape.arena().rewind(mark);
  });
  return y;
}

}  // namespace mh

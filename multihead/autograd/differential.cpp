#include "multihead/autograd/differential.h"

#include <algorithm>
#include <cmath>

namespace mh {
namespace {

/// exp(row a . row b) of the four vectors.
double exp_of_product(const Tensor& vectors, int64_t a, int64_t b) {
  double sum = 0;
  for (int64_t c = 0; c < vectors.cols(); ++c) sum += static_cast<double>(vectors(a, c)) * vectors(b, c);
  return std::exp(sum);
}

/// u = x_2i - lambda x_2i+1; returns 1 / its root mean square.
float difference(const float* first, const float* second, float lambda, int64_t size, float* u) {
  float squares = 0;
  for (int64_t c = 0; c < size; ++c) {
    u[c] = first[c] - lambda * second[c];
    squares += u[c] * u[c];
  }
  return 1 / std::sqrt(squares / static_cast<float>(size) + kDifferentialEpsilon);
}

}  // namespace

float differential_lambda(const DifferentialParameters& parameters) {
  const Tensor& v = parameters.vectors->value.tensor();
  return static_cast<float>(exp_of_product(v, 0, 1) - exp_of_product(v, 2, 3) + parameters.start);
}

Var differential_heads(Tape& tape, Var x, int heads, const DifferentialParameters& parameters) {
  const int64_t size = x.cols() / (2 * int64_t{heads});
  MH_ASSERT(x.cols() == 2 * heads * size && parameters.gain->value.cols() == size);
  const float lambda = differential_lambda(parameters), rest = 1 - parameters.start;
  Var y = tape.make(x.rows(), heads * size, {x});
  for_row_blocks(x.rows(), [&](int64_t begin, int64_t end) {
    const float* gain = parameters.gain->value.data();
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t h = 0; h < heads; ++h) {
        const float* first = x.value().row(r) + 2 * h * size;
        float* out = y.value().row(r) + h * size;
        const float scaled = rest * difference(first, first + size, lambda, size, out);
        for (int64_t c = 0; c < size; ++c) out[c] *= scaled * gain[c];
      }
    }
  });
  // n = u / rms(u), z = dy * rest * gain: du = (z - n mean(z n)) / rms(u);  dx_2i = du;
  // dx_2i+1 = -lambda du;  dlambda += -du . x_2i+1;  dgain += dy * rest * n
  tape.record(y, [&tape, x, y, heads, size, lambda, rest, parameters] {
    const MatrixView dy = y.gradient();
    const Tape::Target dx = x.wants_gradient() ? tape.gradient_of(x) : Tape::Target{};
    const float* gain = parameters.gain->value.data();
    const int64_t blocks = (dy.rows + kRowsPerTask - 1) / kRowsPerTask;
    const Arena::Mark mark = tape.arena().mark();
    const MatrixView sums = tape.arena().matrix<float>(blocks, size + 1);  // dgain, dlambda; merged in order
    const MatrixView work = tape.arena().matrix<float>(blocks, 2 * size);
    for_row_blocks(dy.rows, [&](int64_t begin, int64_t end) {
      float* sum = sums.row(begin / kRowsPerTask);
      float *u = work.row(begin / kRowsPerTask), *z = u + size;
      std::fill_n(sum, size + 1, 0.0f);
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t h = 0; h < heads; ++h) {
          const float *first = x.value().row(r) + 2 * h * size, *second = first + size;
          const float* d = dy.row(r) + h * size;
          const float inverse = difference(first, second, lambda, size, u);
          float mean = 0;
          for (int64_t c = 0; c < size; ++c) {
            u[c] *= inverse;  // n
            sum[c] += rest * d[c] * u[c];
            z[c] = rest * d[c] * gain[c];
            mean += z[c] * u[c];
          }
          mean /= static_cast<float>(size);
          float* to = dx.gradient.data != nullptr ? dx.gradient.row(r) + 2 * h * size : nullptr;
          for (int64_t c = 0; c < size; ++c) {
            const float du = inverse * (z[c] - mean * u[c]);
            sum[size] -= du * second[c];
            if (to == nullptr) continue;
            to[c] = dx.write == Write::kAdd ? to[c] + du : du;
            to[size + c] = dx.write == Write::kAdd ? to[size + c] - lambda * du : -lambda * du;
          }
        }
      }
    });
    if (!tape.trains()) {
      tape.arena().rewind(mark);
      return;
    }
    const MatrixView d_gain = parameters.gain->gradient_sum();
    double d_lambda = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      for (int64_t c = 0; c < size; ++c) d_gain(0, c) += sums(b, c);
      d_lambda += sums(b, size);
    }
    tape.arena().rewind(mark);
    const Tensor& v = parameters.vectors->value.tensor();
    const MatrixView d_vectors = parameters.vectors->gradient_sum();
    for (const int64_t pair : {0, 2}) {
      const double by = d_lambda * exp_of_product(v, pair, pair + 1) * (pair == 0 ? 1 : -1);
      for (int64_t c = 0; c < v.cols(); ++c) {
        d_vectors(pair, c) += static_cast<float>(by * v(pair + 1, c));
        d_vectors(pair + 1, c) += static_cast<float>(by * v(pair, c));
      }
    }
  });
  return y;
}

}  // namespace mh

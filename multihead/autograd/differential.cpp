#include "multihead/autograd/differential.h"

#include <algorithm>
#include <cmath>

#include "multihead/kernels/gemm.h"

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

/// Of the four vectors of which lambda is made.
void add_lambda_gradient(const DifferentialParameters& parameters, double d_lambda) {
  const Tensor& v = parameters.vectors->value.tensor();
  const MatrixView d_vectors = parameters.vectors->gradient_sum();
  for (const int64_t pair : {0, 2}) {
    const double by = d_lambda * exp_of_product(v, pair, pair + 1) * (pair == 0 ? 1 : -1);
    for (int64_t c = 0; c < v.cols(); ++c) {
      d_vectors(pair, c) += static_cast<float>(by * v(pair + 1, c));
      d_vectors(pair + 1, c) += static_cast<float>(by * v(pair, c));
    }
  }
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
    add_lambda_gradient(parameters, d_lambda);
  });
  return y;
}

Var differential_maps(Tape& tape, Var maps, const AttentionInputs& inputs,
                      const DifferentialParameters& parameters) {
  /// A sequence's map: `size` numbers from `to` on in the result, twice as many from 2 * to on in `maps`.
  struct Place {
    int64_t to, size;
  };
  const auto places = tape.arena().array<Place>(static_cast<int64_t>(inputs.query_offsets.size()) - 1);
  int64_t first = 0;
  for (size_t s = 0; s < places.size(); ++s) {
    places[s] = {first, int64_t{inputs.query_offsets[s + 1] - inputs.query_offsets[s]} *
                            (inputs.key_offsets[s + 1] - inputs.key_offsets[s])};
    first += places[s].size;
  }
  MH_ASSERT(maps.cols() == 2 * first);
  const float lambda = differential_lambda(parameters);
  Var y = tape.make(1, first, {maps});
  for (const Place& place : places) {
    const float* from = maps.value().data + 2 * place.to;
    for (int64_t n = 0; n < place.size; ++n)
      y.value().data[place.to + n] = from[n] - lambda * from[place.size + n];
  }
  // dA_1 = dy;  dA_2 = -lambda dy;  dlambda = -dy . A_2
  tape.record(y, [&tape, maps, y, places, lambda, parameters] {
    const Tape::Target d_maps = maps.wants_gradient() ? tape.gradient_of(maps) : Tape::Target{};
    double d_lambda = 0;
    for (const Place& place : places) {
      const float *dy = y.gradient().data + place.to, *second = maps.value().data + 2 * place.to + place.size;
      for (int64_t n = 0; n < place.size; ++n) d_lambda -= static_cast<double>(dy[n]) * second[n];
      if (d_maps.gradient.data == nullptr) continue;
      float* to = d_maps.gradient.data + 2 * place.to;
      for (int64_t n = 0; n < place.size; ++n) {
        const bool add = d_maps.write == Write::kAdd;
        to[n] = (add ? to[n] : 0) + dy[n];
        to[place.size + n] = (add ? to[place.size + n] : 0) - lambda * dy[n];
      }
    }
    if (tape.trains()) add_lambda_gradient(parameters, d_lambda);
  });
  return y;
}

}  // namespace mh

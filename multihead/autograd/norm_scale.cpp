#include "multihead/autograd/norm_scale.h"

#include <cmath>

#include "multihead/autograd/destination.h"

namespace mh {
namespace {

double mean_of(const NormParameters& norm, const float* x, int64_t columns) {
  if (norm.kind == NormKind::kRms) return 0;
  double sum = 0;
  for (int64_t c = 0; c < columns; ++c) sum += static_cast<double>(x[c]);
  return sum / static_cast<double>(columns);
}

}  // namespace

// ds = -s^3 (x - mean) / d dy; nothing where scales are held
Var norm_scale(Tape& tape, Var x, const NormParameters& norm) {
  Var s = tape.make(x.rows(), 1, {x});
  const int64_t columns = x.cols();
  for (int64_t r = 0; r < x.rows(); ++r) {
    const float* row = x.value().row(r);
    const double mean = mean_of(norm, row, columns);
    double squares = 0;
    for (int64_t c = 0; c < columns; ++c)
      squares += (static_cast<double>(row[c]) - mean) * (static_cast<double>(row[c]) - mean);
    s.value()(r, 0) = static_cast<float>(
        1 / std::sqrt(squares / static_cast<double>(columns) + static_cast<double>(norm.epsilon)));
  }
  tape.record(s, [&tape, x, s, norm, columns] {
    const Destination dx(tape, x);
    for (int64_t r = 0; r < x.rows(); ++r) {
      const float* row = x.value().row(r);
      const double mean = mean_of(norm, row, columns), scale = static_cast<double>(s.value()(r, 0));
      const double by = tape.stream_alone() ? 0
                                            : -scale * scale * scale / static_cast<double>(columns) *
                                                  static_cast<double>(s.gradient()(r, 0));
      for (int64_t c = 0; c < columns; ++c)
        dx.written(r, c) = static_cast<float>(by * (static_cast<double>(row[c]) - mean));
    }
    dx.finish();
  });
  return s;
}

// With g = gain * dy: dx = s (g - average(g)), without the average for an RMS norm; ds = sum g (x - mean);
// dgain += dy (x - mean) s, dbias += dy
Var scaled_norm(Tape& tape, Var x, Var scale, const NormParameters& norm) {
  Var y = tape.make(x.rows(), x.cols(), {x, scale});
  const int64_t columns = x.cols();
  const float* const gain = norm.gain->value.data();
  const float* const bias = norm.bias != nullptr ? norm.bias->value.data() : nullptr;
  for (int64_t r = 0; r < x.rows(); ++r) {
    const float* row = x.value().row(r);
    const auto mean = static_cast<float>(mean_of(norm, row, columns));
    for (int64_t c = 0; c < columns; ++c)
      y.value()(r, c) = (row[c] - mean) * scale.value()(r, 0) * gain[c] + (bias != nullptr ? bias[c] : 0.0f);
  }
  tape.record(y, [&tape, x, scale, y, norm, columns] {
    const Destination dx(tape, x), ds(tape, scale);
    const float* const factors = norm.gain->value.data();
    for (int64_t r = 0; r < x.rows(); ++r) {
      const float *row = x.value().row(r), *dy = y.gradient().row(r);
      const double mean = mean_of(norm, row, columns), s = static_cast<double>(scale.value()(r, 0));
      double sum = 0, along = 0;
      for (int64_t c = 0; c < columns; ++c) {
        const double g = static_cast<double>(factors[c]) * static_cast<double>(dy[c]);
        sum += g;
        along += g * (static_cast<double>(row[c]) - mean);
      }
      const double average = norm.kind == NormKind::kRms ? 0 : sum / static_cast<double>(columns);
      ds.written(r, 0) = static_cast<float>(along);
      for (int64_t c = 0; c < columns; ++c) {
        dx.written(r, c) =
            static_cast<float>(s * (static_cast<double>(factors[c]) * static_cast<double>(dy[c]) - average));
      }
      if (!tape.trains()) continue;
      for (int64_t c = 0; c < columns; ++c) {
        norm.gain->gradient_sum()(0, c) +=
            static_cast<float>((static_cast<double>(row[c]) - mean) * s * static_cast<double>(dy[c]));
        if (norm.bias != nullptr) norm.bias->gradient_sum()(0, c) += dy[c];
      }
    }
    dx.finish();
    ds.finish();
  });
  return y;
}

}  // namespace mh

#include "multihead/autograd/gate_heads.h"

#include <algorithm>

#include "multihead/autograd/loops.h"
#include "multihead/base/thread_pool.h"

namespace mh {

Var gate_heads(Tape& tape, Var x, Var gates, std::span<const int32_t> offsets) {
  const int64_t heads = gates.cols(), size = x.cols() / heads;
  const auto sequences = static_cast<int64_t>(offsets.size()) - 1;
  MH_ASSERT(x.cols() == heads * size && (gates.rows() == 1 || gates.rows() == sequences));
  Var y = tape.make(x.rows(), x.cols(), {x, gates});
  const auto of_sequence = [gates](int64_t s) { return gates.value().row(gates.rows() == 1 ? 0 : s); };
  /// body(s, row) for every row.
  const auto for_rows = [offsets, sequences](const auto& body) {
    parallel_for(sequences, [&](int64_t s) {
      const auto at = static_cast<size_t>(s);
      for (int64_t r = offsets[at]; r < offsets[at + 1]; ++r) body(s, r);
    });
  };
  for_rows([&](int64_t s, int64_t r) {
    const float* gate = of_sequence(s);
    for (int64_t c = 0; c < x.cols(); ++c) y.value()(r, c) = gate[c / size] * x.value()(r, c);
  });
  // dx = gate dy;  dgate(s, h) = sum over the rows of s of dy_h . x_h
  tape.record(y, [&tape, x, gates, y, heads, size, sequences, of_sequence, for_rows] {
    if (x.wants_gradient()) {
      const Tape::Target dx = tape.gradient_of(x);
      for_rows([&](int64_t s, int64_t r) {
        const float* gate = of_sequence(s);
        for (int64_t c = 0; c < x.cols(); ++c) {
          const float share = gate[c / size] * y.gradient()(r, c);
          float& to = dx.gradient(r, c);
          to = dx.write == Write::kAdd ? to + share : share;
        }
      });
    }
    if (!gates.wants_gradient()) return;
    const Tape::Target d_gates = tape.gradient_of(gates);
    if (d_gates.write == Write::kOverwrite) {
      for (int64_t i = 0; i < gates.rows(); ++i) std::fill_n(d_gates.gradient.row(i), heads, 0.0f);
    }
    const MatrixView sums = tape.arena().matrix<float>(sequences, heads);  // merged in order
    std::fill_n(sums.data, sums.size(), 0.0f);
    for_rows([&](int64_t s, int64_t r) {
      for (int64_t h = 0; h < heads; ++h)
        sums(s, h) += dot(x.value().row(r) + h * size, y.gradient().row(r) + h * size, size);
    });
    for (int64_t s = 0; s < sequences; ++s)
      add_scaled(1, sums.row(s), heads, d_gates.gradient.row(gates.rows() == 1 ? 0 : s));
  });
  return y;
}

}  // namespace mh

#include "multihead/autograd/disagreement.h"

#include <algorithm>
#include <cmath>

#include "multihead/autograd/loops.h"
#include "multihead/base/thread_pool.h"

namespace mh {
namespace {

double total(std::span<const double> parts) {
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

/// sum_i x_i / |x_i|; inverses[i] = 1 / |x_i|, or 0.
void sum_of_directions(const float* x, int64_t heads, int64_t size, float* sum, float* inverses) {
  std::fill_n(sum, size, 0.0f);
  for (int64_t h = 0; h < heads; ++h) {
    const float squares = dot(x + h * size, x + h * size, size);
    inverses[h] = squares > 0 ? 1 / std::sqrt(squares) : 0;
    add_scaled(inverses[h], x + h * size, size, sum);
  }
}

}  // namespace

// With n_i = x_i / |x_i| and s = sum_i n_i, sum_ij cos(x_i, x_j) = |s|^2: no pair has to be visited.
Var row_similarity(Tape& tape, Var x, int heads) {
  const int64_t size = x.cols() / heads, blocks = (x.rows() + kRowsPerTask - 1) / kRowsPerTask;
  MH_ASSERT(x.cols() == heads * size);
  const double share = 1.0 / (static_cast<double>(heads) * heads);
  Var y = tape.make(1, 1, {x});
  const auto sums = tape.arena().array<double>(blocks);
  const auto work = tape.arena().matrix<float>(blocks, size + heads);
  for_row_blocks(x.rows(), [&](int64_t begin, int64_t end) {
    float* s = work.row(begin / kRowsPerTask);
    double sum = 0;
    for (int64_t r = begin; r < end; ++r) {
      sum_of_directions(x.value().row(r), heads, size, s, s + size);
      sum += static_cast<double>(dot(s, s, size));
    }
    sums[static_cast<size_t>(begin / kRowsPerTask)] = sum;
  });
  y.value()(0, 0) = static_cast<float>(share * total(sums));
  // dx_i = dy (2 / h^2) (s - n_i (n_i . s)) / |x_i|
  tape.record(y, [&tape, x, y, heads, size, share, work] {
    if (!x.wants_gradient()) return;
    const Tape::Target dx = tape.gradient_of(x);
    const float by = static_cast<float>(2 * share) * y.gradient()(0, 0);
    for_row_blocks(x.rows(), [&](int64_t begin, int64_t end) {
      float *s = work.row(begin / kRowsPerTask), *inverses = s + size;
      for (int64_t r = begin; r < end; ++r) {
        const float* row = x.value().row(r);
        sum_of_directions(row, heads, size, s, inverses);
        float* to = dx.gradient.row(r);
        if (dx.write == Write::kOverwrite) std::fill_n(to, x.cols(), 0.0f);
        for (int64_t h = 0; h < heads; ++h) {
          const float along = inverses[h] * dot(row + h * size, s, size);
          add_scaled(by * inverses[h], s, size, to + h * size);
          add_scaled(-by * inverses[h] * inverses[h] * along, row + h * size, size, to + h * size);
        }
      }
    });
  });
  return y;
}

// sum_ij |A_i * A_j| = (sum_i |A_i|)^2 at every query and key.
Var map_similarity(Tape& tape, std::span<const Var> given) {
  const auto maps = tape.arena().array<Var>(static_cast<int64_t>(given.size()));
  std::copy(given.begin(), given.end(), maps.begin());
  const int64_t rows = maps[0].rows(), keys = maps[0].cols();
  const auto heads = static_cast<double>(maps.size());
  const double share = 1.0 / (heads * heads);
  Var y = tape.make(1, 1, maps);
  const MatrixView together = tape.arena().matrix<float>(rows, keys);  // sum_i |A_i|
  const auto sums = tape.arena().array<double>((rows + kRowsPerTask - 1) / kRowsPerTask);
  for_row_blocks(rows, [&](int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t r = begin; r < end; ++r) {
      float* all = together.row(r);
      std::fill_n(all, keys, 0.0f);
      for (const Var map : maps) {
        for (int64_t j = 0; j < keys; ++j) all[j] += std::abs(map.value()(r, j));
      }
      for (int64_t j = 0; j < keys; ++j) sum += static_cast<double>(all[j]) * static_cast<double>(all[j]);
    }
    sums[static_cast<size_t>(begin / kRowsPerTask)] = sum;
  });
  y.value()(0, 0) = static_cast<float>(share * total(sums));
  // dA_i = dy (2 / h^2) (sum_j |A_j|) sign(A_i)
  tape.record(y, [&tape, y, maps, together, share] {
    const float by = static_cast<float>(2 * share) * y.gradient()(0, 0);
    for (const Var map : maps) {
      if (!map.wants_gradient()) continue;
      const Tape::Target dx = tape.gradient_of(map);
      for_row_blocks(map.rows(), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          for (int64_t j = 0; j < map.cols(); ++j) {
            const float a = map.value()(r, j), each = by * together(r, j),
                        d = a > 0   ? each
                            : a < 0 ? -each
                                    : 0;
            dx.gradient(r, j) = dx.write == Write::kAdd ? dx.gradient(r, j) + d : d;
          }
        }
      });
    }
  });
  return y;
}

}  // namespace mh

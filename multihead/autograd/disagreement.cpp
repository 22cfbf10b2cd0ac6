#include "multihead/autograd/disagreement.h"

#include <algorithm>
#include <cmath>

#include "multihead/autograd/loops.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/gemm.h"

namespace mh {
namespace {

double total(std::span<const double> parts) {
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

/// The heads whose rows are compared: columns of one Var, or Vars of their own.
struct HeadRows {
  std::span<const Var> vars;
  int64_t heads, size;  // size: numbers of a head's row

  bool side_by_side() const { return std::ssize(vars) != heads; }
  const float* row(int64_t r, int64_t head) const {
    return side_by_side() ? vars[0].value().row(r) + head * size
                          : vars[static_cast<size_t>(head)].value().row(r);
  }
};

/// sum_i x_i / |x_i| of row r; inverses[i] = 1 / |x_i|, or 0.
void sum_of_directions(const HeadRows& x, int64_t r, float* sum, float* inverses) {
  std::fill_n(sum, x.size, 0.0f);
  for (int64_t h = 0; h < x.heads; ++h) {
    const float* row = x.row(r, h);
    const float squares = dot(row, row, x.size);
    inverses[h] = squares > 0 ? 1 / std::sqrt(squares) : 0;
    add_scaled(inverses[h], row, x.size, sum);
  }
}

// With n_i = x_i / |x_i| and s = sum_i n_i, sum_ij cos(x_i, x_j) = |s|^2: no pair has to be visited.
Var similarity_of(Tape& tape, HeadRows x) {
  const int64_t rows = x.vars[0].rows(), heads = x.heads, size = x.size,
                blocks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  const auto vars = tape.arena().array<Var>(std::ssize(x.vars));
  std::copy(x.vars.begin(), x.vars.end(), vars.begin());
  x.vars = vars;
  const double share = 1.0 / (static_cast<double>(heads) * static_cast<double>(heads));
  Var y = tape.make(1, 1, vars);
  const auto sums = tape.arena().array<double>(blocks);
  const auto work = tape.arena().matrix<float>(blocks, size + heads);
  for_row_blocks(rows, [&](int64_t begin, int64_t end) {
    float* s = work.row(begin / kRowsPerTask);
    double sum = 0;
    for (int64_t r = begin; r < end; ++r) {
      sum_of_directions(x, r, s, s + size);
      sum += static_cast<double>(dot(s, s, size));
    }
    sums[static_cast<size_t>(begin / kRowsPerTask)] = sum;
  });
  y.value()(0, 0) = static_cast<float>(share * total(sums));
  // dx_i = dy (2 / h^2) (s - n_i (n_i . s)) / |x_i|
  tape.record(y, [&tape, x, y, heads, size, share, work] {
    const auto targets = tape.arena().array<Tape::Target>(std::ssize(x.vars));
    for (size_t i = 0; i < x.vars.size(); ++i) {
      if (x.vars[i].wants_gradient()) targets[i] = tape.gradient_of(x.vars[i]);
    }
    const float by = static_cast<float>(2 * share) * y.gradient()(0, 0);
    for_row_blocks(x.vars[0].rows(), [&](int64_t begin, int64_t end) {
      float *s = work.row(begin / kRowsPerTask), *inverses = s + size;
      for (int64_t r = begin; r < end; ++r) {
        sum_of_directions(x, r, s, inverses);
        for (int64_t h = 0; h < heads; ++h) {
          const auto var = static_cast<size_t>(x.side_by_side() ? 0 : h);
          if (!x.vars[var].wants_gradient()) continue;
          float* to = targets[var].gradient.row(r) + (x.side_by_side() ? h * size : 0);
          if (targets[var].write == Write::kOverwrite) std::fill_n(to, size, 0.0f);
          const float* row = x.row(r, h);
          const float along = inverses[h] * dot(row, s, size);
          add_scaled(by * inverses[h], s, size, to);
          add_scaled(-by * inverses[h] * inverses[h] * along, row, size, to);
        }
      }
    });
  });
  return y;
}

}  // namespace

Var row_similarity(Tape& tape, Var x, int heads) {
  MH_ASSERT(x.cols() % heads == 0);
  return similarity_of(tape, {{&x, 1}, heads, x.cols() / heads});
}

Var row_similarity(Tape& tape, std::span<const Var> heads) {
  return similarity_of(tape, {heads, std::ssize(heads), heads[0].cols()});
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

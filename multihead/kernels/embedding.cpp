#include "multihead/kernels/embedding.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/thread_pool.h"

namespace mh {

void embed(const StoredMatrix& table, std::span<const int32_t> ids, float scale, ConstMatrixView positions,
           std::span<const int32_t> positions_of, MatrixView to) {
  for (int64_t i = 0; i < to.rows; ++i) {
    const int32_t id = ids[static_cast<size_t>(i)];
    MH_ASSERT(id >= 0 && id < table.rows);
    float* y = to.row(i);
    table.read_row(id, 0, to.cols, y);
    if (positions.cols == 0) {
      for (int64_t c = 0; c < to.cols; ++c) y[c] *= scale;
      continue;
    }
    const int32_t position = positions_of[static_cast<size_t>(i)];
    MH_ASSERT(position >= 0 && position < positions.rows);
    const float* at = positions.row(position);
    for (int64_t c = 0; c < to.cols; ++c) y[c] = scale * y[c] + at[c];
  }
}

void embed_gradient(std::span<const int32_t> ids, float scale, ConstMatrixView d_output, MatrixView d_table) {
  constexpr int64_t kColumns = 32;  // of a task
  parallel_for((d_table.cols + kColumns - 1) / kColumns, [&](int64_t task) {
    const int64_t begin = task * kColumns, end = std::min(d_table.cols, begin + kColumns);
    for (int64_t i = 0; i < d_output.rows; ++i) {
      const float* from = d_output.row(i);
      float* to = d_table.row(ids[static_cast<size_t>(i)]);
      for (int64_t c = begin; c < end; ++c) to[c] += scale * from[c];
    }
  });
}

void sinusoids(MatrixView positions) {
  const int64_t cols = positions.cols, sines = (cols + 1) / 2;
  for (int64_t p = 0; p < positions.rows; ++p) {
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t i = c < sines ? c : c - sines;
      const double angle = static_cast<double>(p) *
                           std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(cols));
      positions(p, c) = static_cast<float>(c < sines ? std::sin(angle) : std::cos(angle));
    }
  }
}

void fairseq_sinusoids(MatrixView positions) {
  const int64_t cols = positions.cols, half = cols / 2;
  for (int64_t p = 0; p < positions.rows; ++p) {
    for (int64_t c = 0; c < cols; ++c) {
      const auto i = static_cast<double>(c % half);
      const double angle = static_cast<double>(p) * std::pow(10000.0, -i / static_cast<double>(half - 1));
      positions(p, c) = c == 2 * half ? 0 : static_cast<float>(c < half ? std::sin(angle) : std::cos(angle));
    }
  }
}

}  // namespace mh

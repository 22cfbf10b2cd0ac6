#include "multihead/autograd/products_by_head.h"

#include <vector>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/elementwise.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/packed_matrix.h"

namespace mh {
namespace {

void multiply_by(float factor, MatrixView rows) {
  for (int64_t i = 0; i < rows.rows; ++i) {
    for (int64_t c = 0; c < rows.cols; ++c) rows(i, c) *= factor;
  }
}

}  // namespace

Var products_by_head(Tape& tape, Var x, Var y, int heads, float scale) {
  MH_ASSERT(heads > 0 && x.cols() == y.cols() && x.cols() % heads == 0);
  const int64_t size = x.cols() / heads, width = y.rows();
  const Var z = tape.make(x.rows(), heads * width, {x, y});
  const auto of_head = [](MatrixView rows, int64_t head, int64_t columns) {
    return rows.columns_between(head * columns, (head + 1) * columns);
  };
  std::vector<PackedMatrix> packed(static_cast<size_t>(heads));
  parallel_for(
      heads, [&](int64_t h) { packed[static_cast<size_t>(h)].pack_transposed(of_head(y.value(), h, size)); });
  for_row_blocks(x.rows(), [&](int64_t begin, int64_t end) {
    const MatrixView in = x.value().rows_between(begin, end), out = z.value().rows_between(begin, end);
    for (int64_t h = 0; h < heads; ++h)
      detail::multiply_rows(of_head(in, h, size), packed[static_cast<size_t>(h)], of_head(out, h, width),
                            Write::kOverwrite);
    multiply_by(scale, out);
  });
  // dx_h += scale dz_h y_h;  dy_h += scale dz_h^T x_h
  tape.record(z, [&tape, x, y, z, heads, size, width, scale, of_head] {
    const Arena::Mark mark = tape.arena().mark();
    const auto pass_on = [&](Var to, const auto& compute) {
      if (!to.wants_gradient()) return;
      const Tape::Target target = tape.gradient_of(to);
      const MatrixView found = tape.arena().matrix<float>(to.rows(), to.cols());
      parallel_for(heads,
                   [&](int64_t h) { compute(of_head(z.gradient(), h, width), h, of_head(found, h, size)); });
      multiply_by(scale, found);
      copy_or_add(found, target.gradient, target.write);
    };
    pass_on(x, [&](MatrixView dz, int64_t h, MatrixView to) {
      PackedMatrix factor;
      factor.pack(of_head(y.value(), h, size));
      detail::multiply_rows(dz, factor, to, Write::kOverwrite);
    });
    pass_on(y, [&](MatrixView dz, int64_t h, MatrixView to) {
      multiply_transposed(dz, of_head(x.value(), h, size), to);
    });
    tape.arena().rewind(mark);
  });
  return z;
}

}  // namespace mh

#include "multihead/autograd/head_affine.h"

#include <algorithm>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/elementwise.h"
#include "multihead/kernels/gemm.h"

namespace mh {

HeadAffine::HeadAffine(Columns columns, const Parameter* weight, const Parameter* bias)
    : columns_(std::move(columns)), weight_(weight), bias_(bias) {
  MH_ASSERT(!columns_.empty());
  int64_t all = 0;
  int32_t expected = 0;
  in_place_ = true;
  for (const auto& head : columns_) {
    MH_ASSERT(!head.empty());
    const auto size = static_cast<int64_t>(head.size());
    gathered_.push_back({all, all + size});
    all += size;
    for (const int32_t column : head) in_place_ = in_place_ && column == expected++;
  }
  const bool shared = weight_->value.rows() != all;
  for (const Rows& head : gathered_) {
    rows_.push_back(shared ? Rows{0, head.end - head.begin} : head);
    MH_ASSERT(rows_.back().end <= weight_->value.rows());
  }
  MH_ASSERT(!shared || rows_.back().end == weight_->value.rows());
  packed_ = std::vector<Packed>(columns_.size());
  weight_->read_by = ReadBy::kHeads;
}

const PackedMatrix& HeadAffine::packed(int head) const {
  return slot(head).plain.get(weight_->version, [&](PackedMatrix& made) { made.pack(stored(head)); });
}

const PackedMatrix& HeadAffine::packed_transposed(int head) const {
  return slot(head).transposed.get(weight_->version,
                                   [&](PackedMatrix& made) { made.pack_transposed(stored(head)); });
}

namespace {

/// to[:, n] = from[:, column n of all heads], for rows of both.
void gather(const HeadAffine::Columns& columns, ConstMatrixView from, MatrixView to) {
  for (int64_t r = 0; r < from.rows; ++r) {
    float* out = to.row(r);
    for (const auto& head : columns) {
      for (const int32_t column : head) *out++ = from(r, column);
    }
  }
}

/// to[:, column n of all heads] += from[:, n]: heads that read the same number add up, in order.
void scatter_add(const HeadAffine::Columns& columns, ConstMatrixView from, MatrixView to) {
  for (int64_t r = 0; r < from.rows; ++r) {
    const float* in = from.row(r);
    for (const auto& head : columns) {
      for (const int32_t column : head) to(r, column) += *in++;
    }
  }
}

}  // namespace

Var head_affine(Tape& tape, Var x, const HeadAffine& parameters) {
  const int heads = parameters.heads();
  const int64_t rows = x.rows(), width = parameters.outputs();
  const bool in_place = parameters.reads_in_place(x.cols());
  Var y = tape.make(rows, heads * width, {x});
  const MatrixView gathered =
      in_place ? x.value() : tape.arena().matrix<float>(rows, parameters.gathered_columns());
  const ConstMatrixView bias =
      parameters.bias() != nullptr ? ConstMatrixView(parameters.bias()->value.view()) : ConstMatrixView();
  std::vector<const PackedMatrix*> packed;
  for (int h = 0; h < heads; ++h) packed.push_back(&parameters.packed(h));
  for_row_blocks(rows, [&](int64_t begin, int64_t end) {
    const MatrixView in = gathered.rows_between(begin, end), out = y.value().rows_between(begin, end);
    if (!in_place) gather(parameters.columns(), x.value().rows_between(begin, end), in);
    for (int h = 0; h < heads; ++h) {
      const HeadAffine::Rows read = parameters.gathered(h);
      detail::multiply_rows(in.columns_between(read.begin, read.end), *packed[static_cast<size_t>(h)],
                            out.columns_between(h * width, (h + 1) * width), Write::kOverwrite);
    }
    add_bias(bias, out);
  });
  // dx[:, columns_i] += dy_i W_i^T;  dW_i += x[:, columns_i]^T dy_i;  db += sum dy
  tape.record(y, [&tape, x, y, gathered, in_place, heads, width, parameters = &parameters] {
    const MatrixView dy = y.gradient();
    if (x.wants_gradient()) {
      const Tape::Target dx = tape.gradient_of(x);
      const Arena::Mark mark = tape.arena().mark();
      const MatrixView d_gathered =
          in_place ? dx.gradient : tape.arena().matrix<float>(dy.rows, parameters->gathered_columns());
      std::vector<const PackedMatrix*> transposed;
      for (int h = 0; h < heads; ++h) transposed.push_back(&parameters->packed_transposed(h));
      for_row_blocks(dy.rows, [&](int64_t begin, int64_t end) {
        const MatrixView from = dy.rows_between(begin, end), to = d_gathered.rows_between(begin, end);
        for (int h = 0; h < heads; ++h) {
          const HeadAffine::Rows read = parameters->gathered(h);
          detail::multiply_rows(from.columns_between(h * width, (h + 1) * width),
                                *transposed[static_cast<size_t>(h)], to.columns_between(read.begin, read.end),
                                in_place ? dx.write : Write::kOverwrite);
        }
        if (in_place) return;
        const MatrixView out = dx.gradient.rows_between(begin, end);
        if (dx.write == Write::kOverwrite) {
          for (int64_t r = 0; r < out.rows; ++r) std::fill_n(out.row(r), out.cols, 0.0f);
        }
        scatter_add(parameters->columns(), to, out);
      });
      tape.arena().rewind(mark);
    }
    if (!tape.trains()) return;
    // Small products, so side by side; heads that share a matrix add up in order.
    const Arena::Mark mark = tape.arena().mark();
    const MatrixView parts = tape.arena().matrix<float>(parameters->gathered_columns(), width);
    parallel_for(heads, [&](int64_t h) {
      const HeadAffine::Rows read = parameters->gathered(static_cast<int>(h));
      multiply_transposed(gathered.columns_between(read.begin, read.end),
                          dy.columns_between(h * width, (h + 1) * width),
                          parts.rows_between(read.begin, read.end));
    });
    const MatrixView dw = parameters->weight().gradient_sum();
    for (int h = 0; h < heads; ++h) {
      const HeadAffine::Rows read = parameters->gathered(h), own = parameters->rows(h);
      copy_or_add(parts.rows_between(read.begin, read.end), dw.rows_between(own.begin, own.end), Write::kAdd);
    }
    tape.arena().rewind(mark);
    if (parameters->bias() != nullptr) column_sums(dy, parameters->bias()->gradient_sum());
  });
  return y;
}

}  // namespace mh

#include "multihead/heads/measures/composition.h"

#include <cmath>

#include "multihead/base/matrix_view.h"
#include "multihead/base/random.h"
#include "multihead/base/stop.h"
#include "multihead/kernels/gemm.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

double squares_of(ConstDoubleView a) {
  double sum = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) sum += a(i, j) * a(i, j);
  }
  return sum;
}

/// Divided by its norm; zeros stay zeros.
DoubleMatrix of_length_one(DoubleMatrix a) {
  const double norm = norm_of(a.view());
  for (int64_t i = 0; i < a.size() && norm > 0; ++i) a.data()[i] /= norm;
  return a;
}

DoubleMatrix normal_matrix(int64_t rows, int64_t cols, Random& random) {
  DoubleMatrix drawn(rows, cols);
  for (int64_t i = 0; i < drawn.size(); ++i) drawn.data()[i] = random.normal();
  return drawn;
}

}  // namespace

double norm_of(ConstDoubleView a) {
  return std::sqrt(squares_of(a));
}

Writer writer_of(const DoubleMatrix& triangular, const DoubleMatrix& outputs) {
  return {.matrix = of_length_one(product(triangular.view(), outputs.view())), .width = outputs.rows()};
}

Reader reader_of(const DoubleMatrix& inputs, const DoubleMatrix& triangular) {
  return {.matrix = of_length_one(product(inputs.view(), transposed(triangular.view()).view())),
          .width = inputs.cols()};
}

void Writers::add(size_t head, const Writer& writer) {
  const int64_t begin = heads_.empty() ? 0 : heads_.back().end;
  heads_.push_back({head, begin, begin + writer.matrix.rows(), writer.width});
  for (int64_t i = 0; i < writer.matrix.size(); ++i)
    numbers_.push_back(static_cast<float>(writer.matrix.data()[i]));
}

void Composer::compose(const Writers& writers, const std::vector<NamedReader>& readers,
                       std::vector<Composition>& to) {
  if (writers.heads_.empty() || readers.empty()) return;
  std::vector<int64_t> ends;  // of the readers' columns, side by side
  for (const NamedReader& reader : readers)
    ends.push_back((ends.empty() ? 0 : ends.back()) + reader.reader->matrix.cols());
  Tensor side_by_side(d_model_, ends.back());
  for (size_t r = 0; r < readers.size(); ++r) {
    const DoubleMatrix& matrix = readers[r].reader->matrix;
    const int64_t begin = ends[r] - matrix.cols();
    for (int64_t i = 0; i < matrix.rows(); ++i) {
      for (int64_t j = 0; j < matrix.cols(); ++j)
        side_by_side(i, begin + j) = static_cast<float>(matrix(i, j));
    }
  }
  PackedMatrix packed;
  packed.pack(side_by_side.view());

  const int64_t rows = writers.heads_.back().end;
  DoubleMatrix squares(rows, static_cast<int64_t>(readers.size()));  // sums over a reader's columns
  multiply_and_use(ConstMatrixView(writers.numbers_.data(), rows, d_model_), packed,
                   [&](ConstMatrixView found, int64_t first, int64_t end) {
                     for (int64_t i = first; i < end; ++i) {
                       const float* row = found.row(i - first);
                       int64_t column = 0;
                       for (size_t r = 0; r < readers.size(); ++r) {
                         double sum = 0;
                         for (; column < ends[r]; ++column) sum += double{row[column]} * row[column];
                         squares(i, static_cast<int64_t>(r)) = sum;
                       }
                     }
                   });
  for (size_t r = 0; r < readers.size(); ++r) {
    for (const Writers::Of& writer : writers.heads_) {
      double sum = 0;
      for (int64_t i = writer.begin; i < writer.end; ++i) sum += squares(i, static_cast<int64_t>(r));
      to.push_back({.from = writer.head,
                    .to = readers[r].head,
                    .part = readers[r].part,
                    .strength = std::sqrt(sum),
                    .random = random(writer.width, readers[r].reader->width)});
    }
  }
}

double Composer::random(int64_t writer_width, int64_t reader_width) {
  const auto [found, is_new] = randoms_.try_emplace({writer_width, reader_width});
  if (!is_new) return found->second;
  double sum = 0;
  for (int draw = 0; draw < options_.random_draws; ++draw) {
    throw_if_stopped();
    Random random(options_.seed, static_cast<uint64_t>(draw));
    const auto drawn = [&](int64_t width) { return normal_matrix(d_model_, width, random); };
    const auto factor = [&](int64_t width) { return triangular_factor(drawn(width).view()); };
    const DoubleMatrix outputs = transposed(drawn(writer_width).view()), inputs = drawn(reader_width);
    const Writer writer = writer_of(factor(writer_width), outputs);
    const Reader reader = reader_of(inputs, factor(reader_width));
    sum += norm_of(product(writer.matrix.view(), reader.matrix.view()).view());
  }
  return found->second = sum / options_.random_draws;
}

}  // namespace mh

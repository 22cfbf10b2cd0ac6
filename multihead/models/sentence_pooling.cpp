#include "multihead/models/sentence_pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/models/sentence_model.h"

namespace mh {
namespace {

// sum of weight(i) x_i over the rows i = 1, 2, ..., times `scale`; summed in double.
template <class RowWeight>
void weighted_sum(ConstMatrixView states, int32_t begin, int32_t end, double scale, RowWeight&& weight,
                  float* to) {
  std::vector<double> sums(static_cast<size_t>(states.cols));
  for (int32_t i = begin; i < end; ++i) {
    const float* const row = states.row(i);
    const double w = weight(i - begin + 1);
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += w * static_cast<double>(row[j]);
  }
  for (size_t j = 0; j < sums.size(); ++j) to[j] = static_cast<float>(scale * sums[j]);
}

void pool_one(ConstMatrixView states, int32_t begin, int32_t end, Pooling mode, float* to) {
  const double n = end - begin;
  const auto one = [](int32_t) { return 1.0; };
  switch (mode) {
    case Pooling::kFirst:
      std::copy_n(states.row(begin), states.cols, to);
      return;
    case Pooling::kLast:
      std::copy_n(states.row(end - 1), states.cols, to);
      return;
    case Pooling::kMax:
      std::copy_n(states.row(begin), states.cols, to);
      for (int32_t i = begin + 1; i < end; ++i) {
        for (int64_t j = 0; j < states.cols; ++j) to[j] = std::max(to[j], states(i, j));
      }
      return;
    case Pooling::kMean:
      return weighted_sum(states, begin, end, 1 / n, one, to);
    case Pooling::kMeanSqrtLength:
      return weighted_sum(states, begin, end, 1 / std::sqrt(n), one, to);
    case Pooling::kWeightedMean:
      return weighted_sum(
          states, begin, end, 2 / (n * (n + 1)), [](int32_t i) { return static_cast<double>(i); }, to);
  }
}

}  // namespace

void pool_states(ConstMatrixView states, const Ragged& sequences, std::span<const Pooling> modes,
                 MatrixView vectors) {
  const int64_t width = static_cast<int64_t>(modes.size()) * states.cols;
  if (states.rows != sequences.rows() || vectors.rows != sequences.sequences() || vectors.cols != width) {
    throw ShapeError(fmt::format(
        "pooling: {} states of {} numbers and vectors [{}, {}] do not fit {} sequences of {} tokens",
        states.rows, states.cols, vectors.rows, vectors.cols, sequences.sequences(), sequences.rows()));
  }
  for (int32_t s = 0; s < sequences.sequences(); ++s) {
    float* to = vectors.row(s);
    if (sequences.length(s) == 0) {
      std::fill_n(to, width, 0.0f);
      continue;
    }
    for (const Pooling mode : modes) {
      pool_one(states, sequences.begin(s), sequences.end(s), mode, to);
      to += states.cols;
    }
  }
}

void normalise_rows(MatrixView rows) {
  constexpr double kLeast = 1e-12;  // as torch's normalize has it
  for (int64_t i = 0; i < rows.rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < rows.cols; ++j)
      sum += static_cast<double>(rows(i, j)) * static_cast<double>(rows(i, j));
    const double length = std::max(std::sqrt(sum), kLeast);
    for (int64_t j = 0; j < rows.cols; ++j)
      rows(i, j) = static_cast<float>(static_cast<double>(rows(i, j)) / length);
  }
}

}  // namespace mh

#include "multihead/folders/sentence_pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/pool_rows.h"
#include "multihead/base/error.h"
#include "multihead/folders/sentence_model.h"

namespace mh {
namespace {

/// What row i = 1 ... n of a sequence is multiplied by; rows 1 ... p do not count.
double weight_of(Pooling mode, double i, double n, double p) {
  // Where none is left, sentence-transformers takes the first.
  if (mode == Pooling::kFirst) return i == (p < n ? p + 1 : 1) ? 1 : 0;
  if (i <= p) return 0;
  switch (mode) {
    case Pooling::kLast:
      return i == n ? 1 : 0;
    case Pooling::kMean:
      return 1 / (n - p);
    case Pooling::kMeanSqrtLength:
      return 1 / std::sqrt(n - p);
    case Pooling::kWeightedMean:
      return i * 2 / (n * (n + 1) - p * (p + 1));  // the sum of p + 1 ... n
    case Pooling::kFirst:
    case Pooling::kMax:
      break;
  }
  return 0;
}

Var largest(Tape& tape, Var states, const Ragged& sequences, int32_t left_out) {
  if (left_out == 0) return max_rows(tape, states, sequences.offsets());
  std::vector<int32_t> rows;
  Ragged counted;
  for (int32_t s = 0; s < sequences.sequences(); ++s) {
    const int32_t first = std::min(left_out, sequences.length(s));
    for (int32_t i = first; i < sequences.length(s); ++i) rows.push_back(sequences.begin(s) + i);
    counted.add(sequences.length(s) - first);
  }
  if (!rows.empty()) return max_rows(tape, take_rows(tape, states, rows), counted.offsets());
  const std::vector<double> nothing(static_cast<size_t>(states.rows()), 0.0);
  return weigh_rows(tape, states, sequences.offsets(), nothing);
}

Var pool_one(Tape& tape, Var states, const Ragged& sequences, Pooling mode, int32_t left_out) {
  if (mode == Pooling::kMax) return largest(tape, states, sequences, left_out);
  std::vector<double> weights;
  for (int32_t s = 0; s < sequences.sequences(); ++s) {
    const std::vector<double> of_sequence = pooling_weights(mode, sequences.length(s), left_out);
    weights.insert(weights.end(), of_sequence.begin(), of_sequence.end());
  }
  return weigh_rows(tape, states, sequences.offsets(), weights);
}

}  // namespace

std::vector<double> pooling_weights(Pooling mode, int32_t rows, int32_t left_out) {
  std::vector<double> weights;
  for (int32_t i = 1; i <= rows; ++i) weights.push_back(weight_of(mode, i, rows, left_out));
  return weights;
}

Var pool_states(Tape& tape, Var states, const Ragged& sequences, std::span<const Pooling> modes,
                int32_t left_out) {
  if (states.rows() != sequences.rows()) {
    throw ShapeError(fmt::format("pooling: {} states do not fit {} sequences of {} tokens", states.rows(),
                                 sequences.sequences(), sequences.rows()));
  }
  std::vector<Var> all;
  for (const Pooling mode : modes) all.push_back(pool_one(tape, states, sequences, mode, left_out));
  return all.size() == 1 ? all[0] : ops::stack_columns<float>(tape, all);
}

}  // namespace mh

#include "multihead/folders/sentence_pooling.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/pool_rows.h"
#include "multihead/base/error.h"
#include "multihead/folders/sentence_model.h"

namespace mh {
namespace {

/// What row i = 1 ... n of a sequence is multiplied by.
double weight_of(Pooling mode, double i, double n) {
  switch (mode) {
    case Pooling::kFirst:
      return i == 1 ? 1 : 0;
    case Pooling::kLast:
      return i == n ? 1 : 0;
    case Pooling::kMean:
      return 1 / n;
    case Pooling::kMeanSqrtLength:
      return 1 / std::sqrt(n);
    case Pooling::kWeightedMean:
      return i * 2 / (n * (n + 1));
    case Pooling::kMax:
      break;
  }
  return 0;
}

Var pool_one(Tape& tape, Var states, const Ragged& sequences, Pooling mode) {
  if (mode == Pooling::kMax) return max_rows(tape, states, sequences.offsets());
  std::vector<double> weights;
  for (int32_t s = 0; s < sequences.sequences(); ++s) {
    for (int32_t i = 1; i <= sequences.length(s); ++i)
      weights.push_back(weight_of(mode, i, sequences.length(s)));
  }
  return weigh_rows(tape, states, sequences.offsets(), weights);
}

}  // namespace

Var pool_states(Tape& tape, Var states, const Ragged& sequences, std::span<const Pooling> modes) {
  if (states.rows() != sequences.rows()) {
    throw ShapeError(fmt::format("pooling: {} states do not fit {} sequences of {} tokens", states.rows(),
                                 sequences.sequences(), sequences.rows()));
  }
  std::vector<Var> all;
  for (const Pooling mode : modes) all.push_back(pool_one(tape, states, sequences, mode));
  return all.size() == 1 ? all[0] : ops::stack_columns<float>(tape, all);
}

}  // namespace mh

#include "multihead/nn/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mh {

Embedding::Embedding(const EmbeddingConfig& config)
    : scale_(config.scaled ? std::sqrt(static_cast<float>(config.d_model)) : 1.0f),
      table_(config.vocabulary, config.d_model) {}

Var Embedding::look_up(Context& context, std::span<const int32_t> ids, const PositionTable& positions,
                       std::span<const int32_t> rows_of_positions, const Dropout& dropout) const {
  const auto vocabulary = static_cast<int32_t>(table_.value.rows());
  for (int32_t id : ids) {
    if (id < 0 || id >= vocabulary) {
      throw UsageError(fmt::format(
          "token id {} is outside of the vocabulary of {}; does the tokenizer belong to this model?", id,
          vocabulary));
    }
  }
  return embed(context.tape, table_, ids,
               {.scale = scale_,
                .positions = positions.rows(),
                .positions_of = rows_of_positions,
                .learned_positions = positions.learned(),
                .dropout = dropout});
}

Var Embedding::forward(Context& context, const Sequences& rows, const PositionTable& positions,
                       const Dropout& dropout) const {
  const Ragged& ragged = *rows.ragged;
  if (ragged.longest() > positions.longest()) {
    throw UsageError(fmt::format("a sequence of {} tokens is longer than this model's {} positions",
                                 ragged.longest(), positions.longest()));
  }
  const std::span<int32_t> row_of = context.tape.arena().array<int32_t>(ragged.rows());
  for (int32_t s = 0; s < ragged.sequences(); ++s) {
    for (int32_t i = 0; i < ragged.length(s); ++i)
      row_of[static_cast<size_t>(ragged.begin(s) + i)] = positions.row_of(i);
  }
  return look_up(context, rows.ids, positions, row_of, dropout);
}

Var Embedding::at(Context& context, std::span<const int32_t> ids, int32_t position,
                  const PositionTable& positions) const {
  if (position >= positions.longest()) {
    throw UsageError(
        fmt::format("position {} is beyond this model's {} positions", position, positions.longest()));
  }
  const std::span<int32_t> row_of = context.tape.arena().array<int32_t>(static_cast<int64_t>(ids.size()));
  std::fill(row_of.begin(), row_of.end(), positions.row_of(position));
  return look_up(context, ids, positions, row_of, {});
}

}  // namespace mh

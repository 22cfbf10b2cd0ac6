#include "multihead/nn/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mh {

Embedding::Embedding(const EmbeddingConfig& config, Parameter* shared)
    : scale_(config.scaled ? std::sqrt(static_cast<float>(config.d_model)) : 1.0f),
      uncounted_(config.uncounted.value_or(-1)),
      own_table_(shared == nullptr ? std::make_unique<Parameter>(config.vocabulary, config.d_model)
                                   : nullptr),
      table_(shared == nullptr ? own_table_.get() : shared),
      types_(config.token_types > 0 ? Parameter(config.token_types, config.d_model) : Parameter()),
      norm_(config.norm ? std::make_unique<NormLayer>(*config.norm, config.d_model) : nullptr) {}

Var Embedding::at(Context& context, std::span<const int32_t> ids, const TokenPlaces& places,
                  const PositionTable& positions, const Dropout& dropout) const {
  const auto vocabulary = static_cast<int32_t>(table_->value.rows());
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocabulary) continue;
    throw UsageError(fmt::format(
        "token id {} is outside of the vocabulary of {}; does the tokenizer belong to this model?", id,
        vocabulary));
  }
  if (!places.types.empty() && places.types.size() != ids.size()) {
    throw UsageError(
        fmt::format("{} token types for {} tokens; give one each", places.types.size(), ids.size()));
  }
  Arena& arena = context.tape.arena();
  const auto count = static_cast<int64_t>(ids.size());
  const std::span<int32_t> rows = arena.array<int32_t>(count);
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool counts = uncounted_ < 0 || ids[i] != uncounted_;
    const int32_t position = counts ? places.positions[i] : -1;
    if ((counts && position < 0) || position >= positions.longest()) {
      throw UsageError(
          fmt::format("position {} is beyond this model's {} positions", position, positions.longest()));
    }
    rows[i] = positions.row_of(position);
  }
  EmbedOptions options{.scale = scale_,
                       .positions = positions.rows(),
                       .positions_of = rows,
                       .learned_positions = positions.learned(),
                       .dropout = norm_ ? Dropout() : dropout};
  if (types_.value.size() > 0) {
    const std::span<int32_t> types = arena.array<int32_t>(count);
    std::fill(types.begin(), types.end(), 0);
    std::copy(places.types.begin(), places.types.end(), types.begin());
    for (const int32_t type : types) {
      if (type < 0 || type >= types_.value.rows()) {
        throw UsageError(fmt::format("token type {} is outside of this model's {}; expected 0 to {}", type,
                                     types_.value.rows(), types_.value.rows() - 1));
      }
    }
    options.types = &types_;
    options.types_of = types;
  } else if (const auto type =
                 std::find_if(places.types.begin(), places.types.end(), [](int32_t t) { return t != 0; });
             type != places.types.end()) {
    throw UsageError(fmt::format("token type {}: this model has no token types", *type));
  }
  const Var sum = embed(context.tape, *table_, ids, options);
  return norm_ ? norm_->forward(context, sum, dropout) : sum;
}

Var Embedding::forward(Context& context, const Sequences& rows, const PositionTable& positions,
                       const Dropout& dropout) const {
  const Ragged& ragged = *rows.ragged;
  if (ragged.longest() > positions.longest()) {
    throw UsageError(fmt::format("a sequence of {} tokens is longer than this model's {} positions",
                                 ragged.longest(), positions.longest()));
  }
  const std::span<int32_t> places = context.tape.arena().array<int32_t>(ragged.rows());
  for (int32_t s = 0; s < ragged.sequences(); ++s) {
    int32_t next = 0;
    for (int64_t row = ragged.begin(s); row < ragged.begin(s) + ragged.length(s); ++row) {
      const auto i = static_cast<size_t>(row);
      places[i] = next;
      if (uncounted_ < 0 || rows.ids[i] != uncounted_) ++next;
    }
  }
  return at(context, rows.ids, {.positions = places, .types = rows.types}, positions, dropout);
}

void Embedding::visit(const std::string& name, const ParameterVisitor& visitor) {
  if (types_.value.size() > 0) visitor(name + ".types", types_);
  if (norm_) norm_->visit(name + ".norm", visitor);
}

void Embedding::initialise_types(Random& random, double deviation) {
  if (types_.value.size() > 0) fill_normal(types_, random, deviation);
}

}  // namespace mh

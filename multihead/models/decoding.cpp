#include "multihead/models/decoding.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"

namespace mh {

Decoding::Decoding(const LanguageModel& model, Context context, CacheType cache)
    : model_(model), context_(context), cache_(cache) {
  if (context.tape.mode() != Tape::Mode::kEvaluate || context.dropout)
    throw UsageError("decoding needs a context without dropout whose tape does not record");
}

void Decoding::start(const Sequences& source) {
  steps_ = 0;
  context_.tape.clear();
  model_.start(context_, source, cache_);
}

ConstMatrixView Decoding::read(const Sequences& prompts) {
  model_.facts().require_causal();
  start({});
  return read_on(prompts);
}

ConstMatrixView Decoding::read_on(const Sequences& more) {
  const Ragged& rows = *more.ragged;
  for (int32_t s = 0; s < rows.sequences(); ++s) {
    if (rows.length(s) == 0) throw UsageError(fmt::format("prompt {} has no tokens", s + 1));
  }
  context_.tape.clear();
  const ConstMatrixView states = model_.extend(context_, more.ids, {.rows = &rows}, cache_).value();
  steps_ = 1;
  last_.resize(rows.sequences() * states.cols);
  const MatrixView last(last_.data(), rows.sequences(), states.cols);
  last_positions_.clear();
  one_each_.clear();
  for (int32_t s = 0; s < rows.sequences(); ++s) {
    std::copy_n(states.row(rows.end(s) - 1), states.cols, last.row(s));
    last_positions_.push_back(cache_.length(s) - 1);
    one_each_.add(1);
  }
  next_words_.emplace(model_.vocabulary(), context_, context_.tape.constant(last),
                      RowPlaces{.offsets = one_each_.offsets(), .positions = last_positions_});
  return last;
}

ConstMatrixView Decoding::step(std::span<const int32_t> tokens, std::span<const int32_t> parents,
                               std::span<const int32_t> sources) {
  if (tokens.size() != sources.size() || (steps_ > 0 && parents.size() != tokens.size())) {
    throw ShapeError(fmt::format("a step of decoding: {} tokens, {} parents, {} sources; give one each",
                                 tokens.size(), parents.size(), sources.size()));
  }
  context_.tape.clear();
  one_each_.clear();
  for (size_t i = 0; i < tokens.size(); ++i) one_each_.add(1);
  const Var states = model_.extend(
      context_, tokens,
      {.rows = &one_each_, .parents = steps_ > 0 ? parents : std::span<const int32_t>(), .sources = sources},
      cache_);
  next_words_.emplace(model_.vocabulary(), context_, states, cache_.new_places());
  ++steps_;
  return states.value();
}

}  // namespace mh

#include "multihead/models/decoding.h"

#include <algorithm>

namespace mh {

Decoding::Decoding(const EncoderDecoder& model, Context context) : model_(model), context_(context) {
  MH_ASSERT(!context.tape.recording() && !context.dropout);
}

void Decoding::start(const Sequences& source) {
  source_ = *source.ragged;
  steps_ = 0;
  context_.tape.clear();
  const Var memory = model_.encode(context_, source);
  model_.decoder().start(context_, memory, source_.offsets(), cache_);
}

ConstMatrixView Decoding::step(std::span<const int32_t> tokens, std::span<const int32_t> parents,
                               std::span<const int32_t> sources) {
  MH_ASSERT(tokens.size() == sources.size() && (steps_ == 0 || parents.size() == tokens.size()));
  context_.tape.clear();
  const Var x = model_.embed_target(context_, tokens, steps_);
  const Var states = model_.decoder().step(context_, x, parents, sources, cache_);
  ++steps_;
  return states.value();
}

}  // namespace mh

#include "multihead/models/encoder_decoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "multihead/base/error.h"
#include "multihead/models/config_checks.h"
#include "multihead/nn/stack_cache.h"

namespace mh {
namespace {

const EncoderDecoderConfig& checked(const EncoderDecoderConfig& config) {
  const std::vector<std::string> found = problems_of(config);
  if (!found.empty())
    throw UsageError(fmt::format("this Transformer cannot be built: {}", fmt::join(found, "; ")));
  return config;
}

EmbeddingConfig embedding_of(const EncoderDecoderConfig& config, int64_t vocabulary) {
  return {.vocabulary = vocabulary, .d_model = config.d_model, .scaled = config.scale_embedding};
}

}  // namespace

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config)
    : EncoderDecoder(checked(config), DropoutStreams()) {}

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config, DropoutStreams streams)
    : config_(config),
      embedding_(embedding_of(config, config.vocabulary_size)),
      target_embedding_(config.share_embeddings ? nullptr
                                                : std::make_unique<Embedding>(
                                                      embedding_of(config, config.target_vocabulary()))),
      output_(config.share_embeddings
                  ? nullptr
                  : std::make_unique<Parameter>(config.target_vocabulary(), config.d_model)),
      logits_bias_(1, config.target_vocabulary()),
      positions_(config.positions, config.max_positions, config.d_model),
      target_positions_(
          config.positions == Positions::kLearned
              ? std::make_unique<PositionTable>(config.positions, config.max_positions, config.d_model)
              : nullptr),
      encoder_(encoder_stack(config), streams),
      decoder_(decoder_stack(config), streams),
      head_("decoder", output_ ? *output_ : embedding_.table(), &logits_bias_) {}

void EncoderDecoder::initialise(uint64_t seed, double embedding_scale) {
  Random random(seed);
  const double deviation = 1.0 / std::sqrt(static_cast<double>(config_.d_model));
  fill_normal(embedding_.table(), random, embedding_scale * deviation);
  if (target_embedding_) fill_normal(target_embedding_->table(), random, embedding_scale * deviation);
  if (output_) fill_normal(*output_, random, deviation);
  for (PositionTable* positions : {&positions_, target_positions_.get()}) {
    if (positions != nullptr && positions->learned() != nullptr)
      fill_normal(*positions->learned(), random, deviation);  // as fairseq starts them
  }
  encoder_.initialise(random);
  decoder_.initialise(random);
}

Var EncoderDecoder::encode(Context& context, const Sequences& source) const {
  const Var x =
      embedding_.forward(context, source, positions_,
                         dropout_at(context, config_.dropout.residual, kFirstEmbeddingStream, source));
  return encoder_.forward(context, x, source);
}

Var EncoderDecoder::decode(Context& context, const Sequences& target_in, Var memory,
                           const Sequences& source) const {
  const Var x = target_embedding().forward(
      context, target_in, target_positions(),
      dropout_at(context, config_.dropout.residual, kSecondEmbeddingStream, target_in));
  const Memory read{.rows = memory, .sequences = &source};
  return decoder_.forward(context, x, target_in, &read);
}

ModelFacts EncoderDecoder::facts() const {
  return {.source_vocabulary = config_.vocabulary_size,
          .vocabulary = config_.target_vocabulary(),
          .max_positions = config_.max_positions,
          .pad_id = config_.pad_id,
          .eos_id = config_.eos_id,
          .start_id = config_.decoder_start_id,
          .d_model = config_.d_model,
          .positions = config_.positions};
}

EmbeddingConfig EncoderDecoder::embedding_config() const {
  return embedding_of(config_, config_.vocabulary_size);
}

Var EncoderDecoder::last_states(Context& context, const Sequences& text, const Sequences& target) const {
  const Var memory = encode(context, text);
  return target.ids.empty() ? memory : decode(context, target, memory, text);
}

Var EncoderDecoder::states(Context& context, const Sequences& source, const Sequences& target_in) const {
  return decode(context, target_in, encode(context, source), source);
}

void EncoderDecoder::start(Context& context, const Sequences& source, StackCache& cache) const {
  const Memory memory{.rows = encode(context, source), .sequences = &source};
  decoder_.start(context, &memory, cache);
}

Var EncoderDecoder::extend(Context& context, std::span<const int32_t> tokens, const NewRows& rows,
                           StackCache& cache) const {
  const std::span<const int32_t> places = cache.next_positions(rows, context.tape.arena());
  const Var x = target_embedding().at(context, tokens, {.positions = places}, target_positions());
  return decoder_.extend(context, x, rows, cache);
}

void EncoderDecoder::visit(const ParameterVisitor& visitor) {
  visitor("embedding", embedding_.table());
  if (target_embedding_) visitor("target_embedding", target_embedding_->table());
  if (output_) visitor("output", *output_);
  visitor("logits_bias", logits_bias_);
  if (Parameter* learned = positions_.learned()) visitor("positions", *learned);
  if (target_positions_) visitor("target_positions", *target_positions_->learned());
  encoder_.visit(visitor);
  decoder_.visit(visitor);
}

}  // namespace mh

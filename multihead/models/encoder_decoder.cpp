#include "multihead/models/encoder_decoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "multihead/base/error.h"
#include "multihead/models/config_checks.h"
#include "multihead/models/shortest_heads.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/stack_cache.h"

namespace mh {
namespace {

const EncoderDecoderConfig& checked(const EncoderDecoderConfig& config) {
  const std::vector<std::string> found = problems_of(config);
  if (!found.empty())
    throw UsageError(fmt::format("this Transformer cannot be built: {}", fmt::join(found, "; ")));
  return config;
}

/// With sinusoids both sides have the same table.
std::unique_ptr<PositionTable> table_of_target(const EncoderDecoderConfig& config) {
  const Positions positions = config.decoder.positions;
  if (positions != Positions::kLearned && positions == config.encoder.positions) return nullptr;
  return std::make_unique<PositionTable>(positions, config.max_positions, config.target_embedding.d_model,
                                         config.position_offset, config.sinusoids);
}

}  // namespace

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config)
    : EncoderDecoder(checked(config), DropoutStreams()) {}

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config, DropoutStreams streams)
    : config_(config),
      embedding_(config.embedding),
      target_embedding_(config.target_embedding, config.share_embeddings ? &embedding_.table() : nullptr),
      output_(config.tied
                  ? nullptr
                  : std::make_unique<Parameter>(config.target_vocabulary(), config.embedding.d_model)),
      logits_bias_(config.output_bias ? std::make_unique<Parameter>(1, config.target_vocabulary()) : nullptr),
      positions_(config.encoder.positions, config.max_positions, config.embedding.d_model,
                 config.position_offset, config.sinusoids),
      target_positions_(table_of_target(config)),
      encoder_(config.encoder, streams),
      decoder_(config.decoder, streams),
      head_("decoder", output_ ? *output_ : target_embedding_.table(), logits_bias_.get(), std::nullopt,
            config.scale_states ? static_cast<float>(1 / std::sqrt(config.encoder.d_model)) : 1),
      labels_(config.labels ? std::make_unique<LabelHead>("decoder", *config.labels, config.encoder.d_model,
                                                          config.eos_id)
                            : nullptr) {}

void EncoderDecoder::initialise(uint64_t seed, double embedding_scale) {
  Random random(seed);
  const double deviation = 1.0 / std::sqrt(static_cast<double>(config_.embedding.d_model));
  fill_normal(embedding_.table(), random, embedding_scale * deviation);
  if (!config_.share_embeddings) fill_normal(target_embedding_.table(), random, embedding_scale * deviation);
  for (Embedding* embedding : {&embedding_, &target_embedding_})
    embedding->initialise_types(random, deviation);
  if (output_) fill_normal(*output_, random, deviation);
  for (PositionTable* positions : {&positions_, target_positions_.get()}) {
    if (positions != nullptr && positions->learned() != nullptr)
      fill_normal(*positions->learned(), random, deviation);  // as fairseq starts them
  }
  encoder_.initialise(random);
  decoder_.initialise(random);
}

Var EncoderDecoder::encode(Context& context, const Sequences& source) const {
  const Var x = embedding_.forward(
      context, source, positions_,
      dropout_at(context, config_.encoder.dropout.residual, kFirstEmbeddingStream, source));
  return encoder_.forward(context, x, source);
}

Var EncoderDecoder::decode(Context& context, const Sequences& target_in, Var memory,
                           const Sequences& source) const {
  const Var x = target_embedding_.forward(
      context, target_in, target_positions(),
      dropout_at(context, config_.decoder.dropout.residual, kSecondEmbeddingStream, target_in));
  const Memory read{.rows = memory, .sequences = &source};
  return decoder_.forward(context, x, target_in, &read);
}

ModelFacts EncoderDecoder::facts() const {
  return {.source_vocabulary = static_cast<int32_t>(config_.embedding.vocabulary),
          .vocabulary = labels_ ? 0 : config_.target_vocabulary(),
          .max_positions = config_.max_positions,
          .pad_id = config_.pad_id,
          .eos_id = config_.eos_id,
          .start_id = config_.decoder_start_id,
          .d_model = config_.encoder.d_model,
          .positions = config_.encoder.positions};
}

std::unique_ptr<Model> EncoderDecoder::with_heads(const HeadsOfAttentions& heads) const {
  for (const auto& given : heads) attention(given.first);  // it must be there
  EncoderDecoderConfig config = config_;
  HeadsOfAttentions all = heads;
  for (const Attention& named : attentions()) all.try_emplace(named.name, attention(named.name).geometry());
  put_heads(all, {&config.encoder, &config.decoder});
  if (problems_of(config).empty()) {
    // In few fields, so that files can describe many attentions at once.
    for (auto& [name, geometry] : heads_by_name({&config.encoder, &config.decoder}))
      *geometry = shortest(*geometry, config.encoder.d_model);
  }
  return std::make_unique<EncoderDecoder>(config);
}

EmbeddingConfig EncoderDecoder::embedding_config() const {
  return config_.embedding;
}

const VocabularyHead& EncoderDecoder::vocabulary() const {
  if (labels_) throw UsageError("this model is a classifier: it gives labels, and no translation");
  return head_;
}

std::vector<int32_t> EncoderDecoder::shifted(const Sequences& text) const {
  std::vector<int32_t> ids(text.ids.begin(), text.ids.end());
  for (int32_t s = 0; s < text.ragged->sequences(); ++s) {
    const auto begin = ids.begin() + text.ragged->begin(s), end = ids.begin() + text.ragged->end(s);
    if (begin == end) continue;
    const auto last = std::find_if(std::reverse_iterator(end), std::reverse_iterator(begin),
                                   [&](int32_t id) { return id != config_.pad_id; });
    const int32_t of_text = last.base() == begin ? config_.pad_id : *last;
    const int32_t start = config_.shifts_last_to_start ? of_text : config_.decoder_start_id;
    std::shift_right(begin, end, 1);
    *begin = start;
  }
  return ids;
}

Var EncoderDecoder::last_states(Context& context, const Sequences& text, const Sequences& target) const {
  const Var memory = encode(context, text);
  if (!target.ids.empty()) return decode(context, target, memory, text);
  if (!labels_) return memory;
  const std::vector<int32_t> ids = shifted(text);
  const std::span<int32_t> kept = context.tape.arena().array<int32_t>(std::ssize(ids));
  std::copy(ids.begin(), ids.end(), kept.begin());
  Sequences read = text;
  read.ids = kept;
  return decode(context, read, memory, text);
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
  const Var x = target_embedding_.at(context, tokens, {.positions = places}, target_positions());
  return decoder_.extend(context, x, rows, cache);
}

void EncoderDecoder::visit(const ParameterVisitor& visitor) {
  visitor("embedding", embedding_.table());
  embedding_.visit("embedding", visitor);
  if (!config_.share_embeddings) visitor("target_embedding", target_embedding_.table());
  target_embedding_.visit("target_embedding", visitor);
  if (output_) visitor("output", *output_);
  if (logits_bias_) visitor("logits_bias", *logits_bias_);
  if (Parameter* learned = positions_.learned()) visitor("positions", *learned);
  if (target_positions_ && target_positions_->learned() != nullptr)
    visitor("target_positions", *target_positions_->learned());
  encoder_.visit(visitor);
  decoder_.visit(visitor);
  if (labels_) labels_->visit(visitor);
}

}  // namespace mh

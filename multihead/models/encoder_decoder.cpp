#include "multihead/models/encoder_decoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mh {
namespace {

const EncoderDecoderConfig& checked(const EncoderDecoderConfig& config) {
  const std::vector<std::string> found = problems(config);
  if (!found.empty()) throw UsageError(fmt::format("this Transformer cannot be: {}", fmt::join(found, "; ")));
  return config;
}

TransformerLayerConfig layer_config(const EncoderDecoderConfig& config, int heads, int d_ff) {
  HeadGeometry geometry = config.geometry;
  geometry.heads = heads;
  return {.d_model = config.d_model,
          .geometry = std::move(geometry),
          .positions = config.positions,
          .d_ff = d_ff,
          .activation = config.activation,
          .norm = config.norm,
          .dropout = config.dropout};
}

EmbeddingConfig embedding_config(const EncoderDecoderConfig& config, int64_t vocabulary) {
  return {.vocabulary = vocabulary, .d_model = config.d_model, .scaled = config.scale_embedding};
}

// Dropout sites of the two embeddings; the layers count up from 0.
constexpr uint32_t kSourceSite = 1u << 20, kTargetSite = kSourceSite + 1;

}  // namespace

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config)
    : EncoderDecoder(checked(config), DropoutSites()) {}

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config, DropoutSites sites)
    : config_(config),
      embedding_(embedding_config(config, config.vocabulary_size)),
      target_embedding_(config.share_embeddings ? nullptr
                                                : std::make_unique<Embedding>(
                                                      embedding_config(config, config.target_vocabulary()))),
      output_(config.share_embeddings
                  ? nullptr
                  : std::make_unique<Parameter>(config.target_vocabulary(), config.d_model)),
      logits_bias_(1, config.target_vocabulary()),
      positions_(config.positions, config.max_positions, config.d_model),
      target_positions_(
          config.positions == Positions::kLearned
              ? std::make_unique<PositionTable>(config.positions, config.max_positions, config.d_model)
              : nullptr),
      encoder_(config.encoder_layers, layer_config(config, config.encoder_heads, config.encoder_ff), sites),
      decoder_(config.decoder_layers, layer_config(config, config.decoder_heads, config.decoder_ff), sites),
      output_packed_({output_ ? output_.get() : &embedding_.table()}) {}

void EncoderDecoder::initialise(uint64_t seed, double embedding_scale) {
  Random random(seed);
  const double deviation = 1.0 / std::sqrt(static_cast<double>(config_.d_model));
  normal(embedding_.table(), random, embedding_scale * deviation);
  if (target_embedding_) normal(target_embedding_->table(), random, embedding_scale * deviation);
  if (output_) normal(*output_, random, deviation);
  for (PositionTable* positions : {&positions_, target_positions_.get()}) {
    if (positions != nullptr && positions->learned() != nullptr)
      normal(*positions->learned(), random, deviation);  // as fairseq starts them
  }
  encoder_.initialise(random);
  decoder_.initialise(random);
}

Var EncoderDecoder::encode(Context& context, const Sequences& source) const {
  const Var x = embedding_.forward(context, source, positions_,
                                   dropout_at(context, config_.dropout.residual, kSourceSite, source));
  return encoder_.forward(context, x, source);
}

Var EncoderDecoder::decode(Context& context, const Sequences& target_in, Var memory,
                           const Sequences& source) const {
  const Embedding& embedding = target_embedding_ ? *target_embedding_ : embedding_;
  const Var x = embedding.forward(context, target_in, target_positions(),
                                  dropout_at(context, config_.dropout.residual, kTargetSite, target_in));
  return decoder_.forward(context, x, target_in, memory, source);
}

Var EncoderDecoder::embed_target(Context& context, std::span<const int32_t> tokens, int32_t position) const {
  const Embedding& embedding = target_embedding_ ? *target_embedding_ : embedding_;
  return embedding.at(context, tokens, position, target_positions());
}

EncoderDecoder::Loss EncoderDecoder::loss(Context& context, const Sequences& source,
                                          const Sequences& target_in, std::span<const int32_t> target_out,
                                          const LossOptions& options, VocabularyScratch& scratch) const {
  AlikeHeads alike{.form = options.disagreement};
  Context own = context;
  if (options.disagreement != Disagreement::kNone) own.alike = &alike;
  const Var states = decode(own, target_in, encode(own, source), source);
  CrossEntropySums sums;
  const Var loss = cross_entropy(
      context.tape, states, output_packed_, output_bias(),
      {.targets = target_out, .label_smoothing = options.label_smoothing, .scale = options.scale}, scratch,
      sums);
  Loss result{
      .loss = loss, .negative_log_likelihood = sums.negative_log_likelihood, .smoothed = sums.smoothed};
  for (const Var sum : alike.sums) {
    const double share = 1.0 / static_cast<double>(alike.sums.size());
    result.alike_heads += share * static_cast<double>(sum.value()(0, 0));
    const auto factor = static_cast<float>(share * options.disagreement_weight * options.scale);
    if (sum.wants_gradient()) context.tape.seed(sum, {&factor, 1, 1});
  }
  return result;
}

ConstMatrixView EncoderDecoder::output_bias() const {
  const ConstMatrixView bias = logits_bias_.value.view();
  return std::all_of(bias.data, bias.data + bias.cols, [](float b) { return b == 0; }) ? ConstMatrixView()
                                                                                       : bias;
}

OutputLayer EncoderDecoder::output_layer() const {
  return {.logits = &output_packed_.packed_transposed(), .gradient = nullptr, .bias = output_bias()};
}

std::vector<float> EncoderDecoder::log_probabilities(Context& context, const Sequences& source,
                                                     const Sequences& target_in,
                                                     std::span<const int32_t> target_out,
                                                     VocabularyScratch& scratch) const {
  const Var states = decode(context, target_in, encode(context, source), source);
  std::vector<float> found(target_out.size());
  mh::log_probabilities(output_layer(), states.value(), target_out, found, scratch);
  return found;
}

void EncoderDecoder::logits(ConstMatrixView states, MatrixView logits) const {
  const OutputLayer layer = output_layer();
  multiply(states, *layer.logits, logits, Write::kOverwrite,
           [&](int64_t begin, int64_t end) { add_bias(layer.bias, logits.rows_between(begin, end)); });
}

void EncoderDecoder::best_next(ConstMatrixView states, const NextOptions& options, std::span<Candidate> out,
                               VocabularyScratch& scratch) const {
  MH_ASSERT(options.candidates >= 1 && options.candidates <= kMaxCandidates);
  best_candidates(output_layer(), states, options.candidates, options.suppressed, out, scratch);
  // Not-a-number compares false with everything, so that such rows find no candidate at all.
  const bool finite = std::all_of(out.begin(), out.end(),
                                  [](const Candidate& c) { return std::isfinite(c.log_probability); });
  if (!finite) throw Error("the model's probabilities are not finite numbers; its weights may be damaged");
}

std::vector<EncoderDecoder::AttentionName> EncoderDecoder::attentions() const {
  std::vector<AttentionName> names;
  const AttentionVisitor add = [&](const MultiHeadAttention& attention) {
    names.push_back({attention.name(), attention.heads()});
  };
  encoder_.visit_attentions(add);
  decoder_.visit_attentions(add);
  return names;
}

void EncoderDecoder::throw_no_attention(std::string_view name) const {
  throw UsageError(
      fmt::format("this model has no attention '{}'; it has encoder.0 ... {}.self_attention and "
                  "decoder.0 ... {}.self_attention and .cross_attention",
                  name, config_.encoder_layers - 1, config_.decoder_layers - 1));
}

MultiHeadAttention& EncoderDecoder::attention(std::string_view name) {
  MultiHeadAttention* found = encoder_.find_attention(name);
  if (found == nullptr) found = decoder_.find_attention(name);
  if (found == nullptr) throw_no_attention(name);
  return *found;
}

const MultiHeadAttention& EncoderDecoder::attention(std::string_view name) const {
  return const_cast<EncoderDecoder*>(this)->attention(name);
}

void EncoderDecoder::check(const Interventions& interventions) const {
  const std::vector<AttentionName> known = attentions();
  for (const std::string& name : interventions.attentions()) {
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const AttentionName& a) { return a.name == name; });
    if (found == known.end()) throw_no_attention(name);
    interventions.check(name, found->heads);
  }
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

void EncoderDecoder::visit(const ConstParameterVisitor& visitor) const {
  // Layers walk over their parameters in one way only; who reads gets them as const.
  const_cast<EncoderDecoder*>(this)->visit(ParameterVisitor(visitor));
}

int64_t EncoderDecoder::parameter_count() const {
  int64_t count = 0;
  visit([&](const std::string& name, const Parameter& parameter) {
    if (name != "logits_bias") count += parameter.value.size();
  });
  return count;
}

}  // namespace mh

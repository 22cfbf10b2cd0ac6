#include "multihead/models/encoder_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "multihead/autograd/ops.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/models/config_checks.h"

namespace mh {
namespace {

const EncoderConfig& checked(const EncoderConfig& config) {
  if (const auto found = problems_of(config); !found.empty())
    throw UsageError(fmt::format("this encoder cannot be built: {}", fmt::join(found, "; ")));
  return config;
}

}  // namespace

std::vector<std::string> problems_of(const EncoderConfig& config, const ConfigNames& names) {
  std::vector<std::string> found;
  check_sizes(found, config.embedding, config.positions, config.max_positions, names);
  check_range(found, "position_offset", config.position_offset, config.embedding.uncounted ? 1 : 0, 1024);
  if (config.embedding.uncounted && config.positions != Positions::kLearned)
    found.emplace_back("tokens without a place are for learned positions; leave `uncounted` unset");
  check_range(found, "the stack's d_model", config.stack.d_model, 1, 1 << 16);
  if (found.empty()) check_stack(found, config.stack, config.stack.d_model);
  if (!all_look(AttentionDirection::kBidirectional, config.stack))
    found.emplace_back("an encoder sees both sides of a token; set its masks to none or local");
  if (config.stack.cross_attention)
    found.emplace_back("an encoder reads no memory; set cross_attention to no");
  if (config.labels) {
    check_range(found, "labels", config.labels->labels, 1, 1 << 16);
    if (config.labels->rows == LabelRows::kPooled && !config.pooler)
      found.emplace_back("labels are made of what a pooler gives, and there is none");
  }
  if (config.pad_id != -1)
    check_range(found, names.pad_id, config.pad_id, 0, config.embedding.vocabulary - 1);
  return found;
}

double least_parameters(const EncoderConfig& config) {
  const auto d = static_cast<double>(config.embedding.d_model);
  return d * static_cast<double>(config.embedding.vocabulary) + least_parameters(config.stack);
}

EncoderModel::MaskedWords::MaskedWords(const EncoderConfig& config, const Parameter& table)
    : dense(config.stack.d_model, config.embedding.d_model, config.masked_words->biases),
      norm(config.stack.norm, config.embedding.d_model),
      bias(1, config.embedding.vocabulary),
      head("encoder", table, &bias) {}

EncoderModel::EncoderModel(const EncoderConfig& config) : EncoderModel(checked(config), DropoutStreams()) {}

EncoderModel::EncoderModel(const EncoderConfig& config, DropoutStreams streams)
    : config_(config),
      embedding_(config.embedding),
      positions_(config.positions, config.max_positions, config.embedding.d_model, config.position_offset),
      projection_(config.embedding.d_model == config.stack.d_model
                      ? nullptr
                      : std::make_unique<Dense>(config.embedding.d_model, config.stack.d_model)),
      stack_(config.stack, streams),
      pooler_(config.pooler ? std::make_unique<Dense>(config.stack.d_model, config.stack.d_model) : nullptr),
      words_(config.masked_words ? std::make_unique<MaskedWords>(config, embedding_.table()) : nullptr),
      labels_(config.labels ? std::make_unique<LabelHead>("encoder", *config.labels, config.stack.d_model,
                                                          config.pad_id)
                            : nullptr) {}

Var EncoderModel::states(Context& context, const Sequences& tokens) const {
  const Dropout dropout = dropout_at(context, config_.stack.dropout.residual, kFirstEmbeddingStream, tokens);
  const Var embedded = embedding_.forward(context, tokens, positions_, dropout);
  return stack_.forward(context, projection_ ? affine(context.tape, embedded, projection_->affine) : embedded,
                        tokens);
}

std::unique_ptr<Model> EncoderModel::with_heads(const HeadsOfAttentions& heads) const {
  EncoderConfig config = config_;
  put_heads(heads, {&config.stack});
  return std::make_unique<EncoderModel>(config);
}

ModelFacts EncoderModel::facts() const {
  return {.source_vocabulary = static_cast<int32_t>(config_.embedding.vocabulary),
          .max_positions = config_.max_positions,
          .pad_id = config_.pad_id,
          .d_model = config_.stack.d_model,
          .positions = config_.positions};
}

Var EncoderModel::last_states(Context& context, const Sequences& text, const Sequences& target) const {
  if (!target.ids.empty()) throw UsageError("this model reads one text; leave the target out");
  return states(context, text);
}

Var EncoderModel::pooled(Context& context, Var states, const Sequences& tokens) const {
  if (!pooler_) throw UsageError("this model has no pooler; take the mean of its states");
  Tape& tape = context.tape;
  const Var before = affine(tape, first_rows(tape, states, tokens), pooler_->affine);
  require_finite(before.value(), "pooled states", context.blame());  // tanh would make 1 of infinity
  return context.at(
      {"encoder", SitePart::kPooled},
      {.value = ops::tanh(tape, before), .rows = one_row_each(tape.arena(), tokens.ragged->sequences())});
}

Var EncoderModel::label_rows(Context& context, Var states, const Sequences& rows) const {
  return labels_->config().rows == LabelRows::kPooled ? pooled(context, states, rows) : states;
}

void EncoderModel::call_pooled(Context& context, Var states, const Sequences& tokens) const {
  if (pooler_ && context.wants({"encoder", SitePart::kPooled})) pooled(context, states, tokens);
}

const EncoderModel::MaskedWords& EncoderModel::words() const {
  if (!words_) throw UsageError("this model has no head for masked words; take one that was saved with it");
  return *words_;
}

Var EncoderModel::word_states(const Context& context, Var states) const {
  const MaskedWords& words = this->words();
  const Var activated = affine(context.tape, states, words.dense.affine,
                               {.activation = config_.masked_words->activation, .dropout = {}});
  return words.norm.forward(context, activated);
}

const VocabularyHead& EncoderModel::vocabulary() const {
  return words().head;
}

void EncoderModel::visit(const ParameterVisitor& visitor) {
  visitor("embedding", embedding_.table());
  embedding_.visit("embedding", visitor);
  if (Parameter* learned = positions_.learned()) visitor("positions", *learned);
  if (projection_) {
    visitor("embedding.projection.w", projection_->w);
    visitor("embedding.projection.b", projection_->b);
  }
  stack_.visit(visitor);
  if (pooler_) {
    visitor("pooler.w", pooler_->w);
    visitor("pooler.b", pooler_->b);
  }
  if (words_) {
    visitor("masked_words.w", words_->dense.w);
    if (config_.masked_words->biases == Biases::kAll) visitor("masked_words.b", words_->dense.b);
    words_->norm.visit("masked_words.norm", visitor);
    visitor("masked_words.output_bias", words_->bias);
  }
  if (labels_) labels_->visit(visitor);
}

}  // namespace mh

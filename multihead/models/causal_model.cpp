#include "multihead/models/causal_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "multihead/base/error.h"
#include "multihead/kernels/soft_cap.h"
#include "multihead/models/config_checks.h"
#include "multihead/nn/stack_cache.h"

namespace mh {
namespace {

const CausalConfig& checked(const CausalConfig& config) {
  if (const auto found = problems_of(config); !found.empty())
    throw UsageError(fmt::format("this decoder cannot be built: {}", fmt::join(found, "; ")));
  return config;
}

}  // namespace

std::vector<std::string> problems_of(const CausalConfig& config, const ConfigNames& names) {
  std::vector<std::string> found;
  check_sizes(found, config.embedding, config.positions, config.max_positions, names);
  if (found.empty()) check_stack(found, config.stack, config.embedding.d_model);
  if (!all_look(AttentionDirection::kCausal, config.stack))
    found.emplace_back("a causal decoder must not see what is to come; set its masks to causal or a window");
  if (config.stack.cross_attention)
    found.emplace_back("a causal decoder reads no memory; set cross_attention to no");
  if (config.logit_soft_cap && !is_soft_cap(*config.logit_soft_cap)) {
    found.push_back(
        fmt::format("logit_soft_cap is {}; expected a positive number, for example 30, or leave it unset",
                    *config.logit_soft_cap));
  }
  if (config.labels) {
    check_range(found, "labels", config.labels->labels, 1, 1 << 16);
    if (config.predicts)
      found.emplace_back("a classifier has labels in the place of an output layer; set predicts to no");
    if (config.labels->rows == LabelRows::kPooled)
      found.emplace_back("labels are made of what a pooler gives, and a decoder has none");
  }
  for (const auto& [name, id] : {std::pair{names.pad_id, config.pad_id},
                                 {names.eos_id, config.eos_id},
                                 {names.start_id, config.start_id}}) {
    if (id != -1) check_range(found, name, id, 0, config.embedding.vocabulary - 1);
  }
  return found;
}

double least_parameters(const CausalConfig& config) {
  const auto d = static_cast<double>(config.embedding.d_model);
  return d * static_cast<double>(config.embedding.vocabulary) + least_parameters(config.stack);
}

CausalModel::CausalModel(const CausalConfig& config) : CausalModel(checked(config), DropoutStreams()) {}

CausalModel::CausalModel(const CausalConfig& config, DropoutStreams streams)
    : config_(config),
      embedding_(config.embedding),
      positions_(config.positions, config.max_positions, config.embedding.d_model, config.position_offset),
      output_(config.tied || !config.predicts
                  ? nullptr
                  : std::make_unique<Parameter>(config.embedding.vocabulary, config.embedding.d_model)),
      output_bias_(config.output_bias && config.predicts
                       ? std::make_unique<Parameter>(1, config.embedding.vocabulary)
                       : nullptr),
      stack_(config.stack, streams),
      head_("decoder", output_ ? *output_ : embedding_.table(), output_bias_.get(), config.logit_soft_cap),
      labels_(config.labels ? std::make_unique<LabelHead>("decoder", *config.labels, config.embedding.d_model,
                                                          config.pad_id)
                            : nullptr) {}

void CausalModel::initialise(uint64_t seed) {
  Random random(seed);
  const double deviation = 1.0 / std::sqrt(static_cast<double>(config_.embedding.d_model));
  fill_normal(embedding_.table(), random, deviation);
  embedding_.initialise_types(random, deviation);
  if (output_) fill_normal(*output_, random, deviation);
  if (Parameter* learned = positions_.learned()) fill_normal(*learned, random, deviation);
  stack_.initialise(random);
}

std::unique_ptr<Model> CausalModel::with_heads(const HeadsOfAttentions& heads) const {
  CausalConfig config = config_;
  put_heads(heads, {&config.stack});
  return std::make_unique<CausalModel>(config);
}

ModelFacts CausalModel::facts() const {
  const auto vocabulary = static_cast<int32_t>(config_.embedding.vocabulary);
  return {.source_vocabulary = config_.predicts ? 0 : vocabulary,
          .vocabulary = config_.predicts ? vocabulary : 0,
          .max_positions = config_.max_positions,
          .pad_id = config_.pad_id,
          .eos_id = config_.eos_id,
          .start_id = config_.start_id,
          .d_model = config_.stack.d_model,
          .positions = config_.positions};
}

const VocabularyHead& CausalModel::vocabulary() const {
  if (labels_)
    throw UsageError("this model is a classifier: it gives labels, and no words that follow a text");
  if (!config_.predicts)
    throw UsageError("this model has no output layer; take one that was saved with it (...ForCausalLM)");
  return head_;
}

Var CausalModel::states(Context& context, const Sequences&, const Sequences& target_in) const {
  const Dropout dropout =
      dropout_at(context, config_.stack.dropout.residual, kFirstEmbeddingStream, target_in);
  const Var x = embedding_.forward(context, target_in, positions_, dropout);
  return stack_.forward(context, x, target_in);
}

Var CausalModel::last_states(Context& context, const Sequences& text, const Sequences& target) const {
  if (!target.ids.empty()) throw UsageError("this model reads one text; leave the target out");
  return states(context, {}, text);
}

void CausalModel::start(Context& context, const Sequences&, StackCache& cache) const {
  stack_.start(context, nullptr, cache);
}

Var CausalModel::extend(Context& context, std::span<const int32_t> tokens, const NewRows& rows,
                        StackCache& cache) const {
  const std::span<const int32_t> places = cache.next_positions(rows, context.tape.arena());
  return stack_.extend(context, embedding_.at(context, tokens, {.positions = places}, positions_), rows,
                       cache);
}

void CausalModel::visit(const ParameterVisitor& visitor) {
  visitor("embedding", embedding_.table());
  embedding_.visit("embedding", visitor);
  if (output_) visitor("output", *output_);
  if (output_bias_) visitor("output_bias", *output_bias_);
  if (Parameter* learned = positions_.learned()) visitor("positions", *learned);
  stack_.visit(visitor);
  if (labels_) labels_->visit(visitor);
}

}  // namespace mh

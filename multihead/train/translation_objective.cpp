#include "multihead/train/translation_objective.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/batch/check_ids.h"
#include "multihead/io/check_option.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {

TranslationObjective::TranslationObjective(EncoderDecoder& model, const TrainingCorpus& corpus,
                                           const TranslationOptions& options)
    : model_(model), corpus_(corpus), options_(options) {
  check_option("label_smoothing", options.label_smoothing, {.low = 0, .high = 0.95f});
  check_option("disagreement_weight", options.disagreement_weight, {.low = 0, .high = 1000});
  if (options.head_gates) check_option("head_gates", *options.head_gates, {.low = 0, .high = 1000});
  const size_t pairs = corpus.tokens.source.size();
  if (corpus.tokens.target.size() != pairs || corpus.lines.size() != pairs) {
    throw UsageError(fmt::format(
        "training corpus: expected as many targets and line numbers as sources, got {}, {} and {}",
        corpus.tokens.target.size(), corpus.lines.size(), pairs));
  }
  if (pairs == 0) throw UsageError("training corpus: expected at least one pair, got none");
  const ModelFacts facts = model.facts();
  const IdLimits source{.what = "source line",
                        .longest = facts.max_positions,
                        .vocabulary = facts.source_vocabulary,
                        .may_be_empty = false};
  const IdLimits target{.what = "target line",
                        .longest = facts.max_positions,  // the start token comes before, the end is not read
                        .vocabulary = facts.vocabulary,
                        .may_be_empty = false};
  for (size_t i = 0; i < pairs; ++i) {
    check_ids(corpus.tokens.source[i], corpus.lines[i], source);
    check_ids(corpus.tokens.target[i], corpus.lines[i], target);
  }
  if (options.head_gates) gates_ = std::make_unique<HeadGates>(model);
}

void TranslationObjective::visit(const ParameterVisitor& visitor) {
  model_.visit(visitor);
  if (gates_) gates_->visit(visitor);
}

std::optional<Objective::OpenHeads> TranslationObjective::open_heads() const {
  if (!gates_) return std::nullopt;
  const HeadGates::Open found = gates_->open();
  return OpenHeads{.open = found.open, .expected = found.expected};
}

bool TranslationObjective::saved_apart(std::string_view parameter) const {
  return gates_ && (parameter.starts_with("head_gates.") || parameter.ends_with(".w_o"));
}

std::unique_ptr<FoldedGates> TranslationObjective::fold() const {
  return gates_ ? std::make_unique<FoldedGates>(model_, *gates_) : nullptr;
}

void TranslationObjective::save_model(const std::filesystem::path& folder, const SaveOptions& options) const {
  const auto folded = fold();
  save_model_folder(folder, model_, options);
}

std::vector<std::vector<int64_t>> TranslationObjective::plan(uint64_t epoch) const {
  return plan_batches(corpus_.tokens, options_.batches, epoch);
}

int64_t TranslationObjective::target_tokens(std::span<const int64_t> batch) const {
  return mh::target_tokens(corpus_, batch);
}

// Of one forward pass; a backward pass costs twice as much of everything.
double TranslationObjective::cost(int64_t example) const {
  const auto at = static_cast<size_t>(example);
  const auto s = static_cast<double>(corpus_.tokens.source[at].size());
  const auto t = static_cast<double>(corpus_.tokens.target[at].size());
  const EncoderDecoderConfig& c = model_.config();
  const auto layers = [](const StackConfig& stack) { return static_cast<double>(stack.layers.size()); };
  const double d = c.encoder.d_model, encoder = layers(c.encoder), decoder = layers(c.decoder);
  const int encoder_ff = c.encoder.layers.front().feed_forward.d_ff;
  const int decoder_ff = c.decoder.layers.front().feed_forward.d_ff;
  const double rows_of_encoder = encoder * (4 * d * d + 2 * d * encoder_ff);
  const double memory = decoder * 2 * d * d;  // cross-attention's keys and values
  const double rows_of_decoder = decoder * (6 * d * d + 2 * d * decoder_ff) + d * c.target_vocabulary();
  const double scores = 2 * d * (encoder * s * s + decoder * (t * t / 2 + s * t));
  return s * (rows_of_encoder + memory) + t * rows_of_decoder + scores;
}

std::vector<int64_t> TranslationObjective::lines(std::span<const int64_t> batch) const {
  std::vector<int64_t> lines;
  for (const int64_t pair : batch) lines.push_back(corpus_.lines[static_cast<size_t>(pair)]);
  return lines;
}

LossSums TranslationObjective::loss(Context& context, std::span<const int64_t> batch, float scale) {
  gather(corpus_, batch, model_.config().decoder_start_id, source_, target_);
  Context own = context;
  std::optional<SitesInTurn> sites;
  if (gates_) {
    // The price of an update is spread over its batches by their target tokens, as the loss is.
    const DropoutKey key = context.dropout.value_or(DropoutKey{});
    gates_->draw(key.seed, key.update);
    gates_->add_price(static_cast<double>(*options_.head_gates) * static_cast<double>(scale) *
                      static_cast<double>(target_.next.size()));
    own.sites = &sites.emplace(context.sites, *gates_);
  }
  const Loss loss = model_.loss(own, source_.view(), target_.input.view(), target_.next,
                                {.label_smoothing = options_.label_smoothing,
                                 .scale = scale,
                                 .disagreement = options_.disagreement,
                                 .disagreement_weight = options_.disagreement_weight},
                                scratch_);
  return {.smoothed_loss = loss.smoothed,
          .negative_log_likelihood = loss.negative_log_likelihood,
          .head_similarity = loss.head_similarity,
          .target_tokens = static_cast<int64_t>(target_.next.size()),
          .source_tokens = source_.ragged.rows(),
          .sentences = source_.ragged.sequences()};
}

}  // namespace mh

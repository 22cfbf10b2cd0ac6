#include "multihead/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"

namespace mh {
namespace {

std::vector<NamedParameter> named_parameters(EncoderDecoder& model) {
  std::vector<NamedParameter> parameters;
  model.visit([&](const std::string& name, Parameter& parameter) {
    parameters.push_back({name, &parameter});
  });
  return parameters;
}

}  // namespace

Trainer::Trainer(EncoderDecoder& model, const TrainingCorpus& corpus, const TrainerOptions& options)
    : model_(model), corpus_(corpus), options_(options), adam_(named_parameters(model), options.adam) {
  MH_ASSERT(corpus.tokens.size() > 0 && options.accumulate >= 1);
}

int64_t Trainer::batches_in_epoch() {
  if (planned_epoch_ != state_.epoch) {
    plan_ = plan_batches(corpus_.tokens, options_.batches, static_cast<uint64_t>(state_.epoch));
    planned_epoch_ = state_.epoch;
  }
  return static_cast<int64_t>(plan_.size());
}

Trainer::Range Trainer::next_batches() {
  const int64_t end = std::min(state_.batch + options_.accumulate, batches_in_epoch());
  MH_ASSERT(state_.batch < end);
  return {static_cast<size_t>(state_.batch), static_cast<size_t>(end)};
}

std::vector<int64_t> Trainer::lines_of_next_update() {
  std::vector<int64_t> lines;
  const Range range = next_batches();
  for (size_t b = range.begin; b < range.end; ++b) {
    for (const int64_t pair : plan_[b]) lines.push_back(corpus_.lines[static_cast<size_t>(pair)]);
  }
  return lines;
}

UpdateReport Trainer::update() {
  const Range range = next_batches();
  UpdateReport report;
  for (size_t b = range.begin; b < range.end; ++b) report.target_tokens += target_tokens(corpus_, plan_[b]);
  const EncoderDecoder::LossOptions loss_options{.label_smoothing = options_.label_smoothing,
                                                 .scale = 1.0f / static_cast<float>(report.target_tokens),
                                                 .disagreement = options_.disagreement,
                                                 .disagreement_weight = options_.disagreement_weight};
  if (!tape_) tape_.emplace(Tape::Mode::kRecord);
  const auto number = static_cast<uint64_t>(state_.update + 1);
  for (size_t b = range.begin; b < range.end; ++b) {
    gather(corpus_, plan_[b], model_.config().decoder_start_id, source_, target_);
    tape_->clear();
    Context context{.tape = *tape_, .dropout = DropoutKey{options_.seed, number}};
    const EncoderDecoder::Loss loss =
        model_.loss(context, source_.view(), target_.input.view(), target_.next, loss_options, scratch_);
    tape_->backward();
    report.smoothed_loss += loss.smoothed;
    report.negative_log_likelihood += loss.negative_log_likelihood;
    report.alike_heads += loss.alike_heads;
    report.source_tokens += source_.ragged.rows();
    report.sentences += source_.ragged.sequences();
  }
  report.gradient_norm = adam_.gradient_norm();
  report.learning_rate = options_.schedule.learning_rate(state_.update + 1);
  report.finite = std::isfinite(report.smoothed_loss) && std::isfinite(report.gradient_norm);
  if (!report.finite) return report;
  adam_.update(report.learning_rate, clip_factor(report.gradient_norm, options_.clip_norm));

  state_.update += 1;
  state_.batch = static_cast<int64_t>(range.end);
  if (range.end == plan_.size()) {
    state_.epoch += 1;
    state_.batch = 0;
  }
  state_.smoothed_loss += report.smoothed_loss;
  state_.negative_log_likelihood += report.negative_log_likelihood;
  state_.target_tokens += report.target_tokens;
  state_.source_tokens += report.source_tokens;
  state_.sentences += report.sentences;
  return report;
}

}  // namespace mh

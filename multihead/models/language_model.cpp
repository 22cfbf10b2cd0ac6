#include "multihead/models/language_model.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/vocabulary_head.h"

namespace mh {

Loss LanguageModel::loss(Context& context, const Sequences& source, const Sequences& target_in,
                         std::span<const int32_t> target_out, const LossOptions& options,
                         VocabularyScratch& scratch) const {
  HeadSimilarities similarity(options.disagreement);
  SitesInTurn sites(context.sites, similarity);
  Context own = context;
  if (options.disagreement.any()) own.sites = &sites;
  const Var found = states(own, source, target_in);
  CrossEntropySums sums;
  const Var loss = vocabulary().cross_entropy(
      context.tape, found,
      {.targets = target_out, .label_smoothing = options.label_smoothing, .scale = options.scale}, scratch,
      sums);
  if (options.disagreement.any())
    similarity.seed(context.tape, static_cast<double>(options.disagreement_weight) * options.scale);
  return {.loss = loss,
          .negative_log_likelihood = sums.negative_log_likelihood,
          .smoothed = sums.smoothed,
          .head_similarity = similarity.mean()};
}

Var LanguageModel::logits(Context& context, Var states, const Sequences& rows) const {
  return context.at({"decoder", SitePart::kLogits}, {.value = vocabulary().logits(context.tape, states),
                                                     .rows = {.offsets = rows.ragged->offsets()}});
}

void LanguageModel::visit_output_sites(const SiteVisitor& visitor) const {
  visitor({.name = Site{"decoder", SitePart::kLogits}.name(), .columns = vocabulary().size()});
}

void LanguageModel::call_output_sites(Context& context, Var states, const Sequences& rows) const {
  if (context.wants({"decoder", SitePart::kLogits})) logits(context, states, rows);
}

std::vector<float> LanguageModel::log_probabilities(Context& context, const Sequences& source,
                                                    const Sequences& target_in,
                                                    std::span<const int32_t> target_out,
                                                    VocabularyScratch& scratch) const {
  return vocabulary().log_probabilities(states(context, source, target_in).value(), target_out, scratch);
}

}  // namespace mh

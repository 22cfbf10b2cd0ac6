#include "multihead/models/language_model.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/vocabulary_head.h"

namespace mh {

Loss LanguageModel::loss(Context& context, const Sequences& source, const Sequences& target_in,
                         std::span<const int32_t> target_out, const LossOptions& options,
                         VocabularyScratch& scratch) const {
  HeadSimilaritySums similarity{.form = options.disagreement};
  Context own = context;
  if (options.disagreement != Disagreement::kNone) own.similarity = &similarity;
  const Var found = states(own, source, target_in);
  CrossEntropySums sums;
  const Var loss = vocabulary().cross_entropy(
      context.tape, found,
      {.targets = target_out, .label_smoothing = options.label_smoothing, .scale = options.scale}, scratch,
      sums);
  Loss result{
      .loss = loss, .negative_log_likelihood = sums.negative_log_likelihood, .smoothed = sums.smoothed};
  for (const Var sum : similarity.sums) {
    const double share = count_parts(similarity.form) / static_cast<double>(similarity.sums.size());
    result.head_similarity += share * static_cast<double>(sum.value()(0, 0));
    const auto factor = static_cast<float>(share * options.disagreement_weight * options.scale);
    if (sum.wants_gradient()) context.tape.seed(sum, {&factor, 1, 1});
  }
  return result;
}

std::vector<float> LanguageModel::log_probabilities(Context& context, const Sequences& source,
                                                    const Sequences& target_in,
                                                    std::span<const int32_t> target_out,
                                                    VocabularyScratch& scratch) const {
  return vocabulary().log_probabilities(states(context, source, target_in).value(), target_out, scratch);
}

}  // namespace mh

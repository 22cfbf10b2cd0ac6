#include "multihead/models/language_model.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/next_words.h"
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
  const Var loss =
      next_words(own, found, target_in)
          .cross_entropy(
              {.targets = target_out, .label_smoothing = options.label_smoothing, .scale = options.scale},
              scratch, sums);
  if (options.disagreement.any())
    similarity.seed(context.tape, static_cast<double>(options.disagreement_weight) * options.scale);
  return {.loss = loss,
          .negative_log_likelihood = sums.negative_log_likelihood,
          .smoothed = sums.smoothed,
          .head_similarity = similarity.mean()};
}

std::vector<float> LanguageModel::log_probabilities(Context& context, const Sequences& source,
                                                    const Sequences& target_in,
                                                    std::span<const int32_t> target_out,
                                                    VocabularyScratch& scratch) const {
  const Var found = states(context, source, target_in);
  return next_words(context, found, target_in).log_probabilities(target_out, scratch);
}

}  // namespace mh

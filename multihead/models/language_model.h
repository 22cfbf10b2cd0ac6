// A model that says which token comes next: an encoder-decoder, given a source, or a causal decoder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/nn/disagreement.h"

namespace mh {

class StackCache;
class VocabularyHead;
class VocabularyScratch;
struct NewRows;

struct LossOptions {
  float label_smoothing = 0;  // this much of the target's mass is spread evenly over the vocabulary
  float scale = 1;            // the loss is scale * sum over tokens (training: 1 / tokens of the update)
  Disagreement disagreement = Disagreement::kNone;  // added to what is differentiated, not to `loss`
  float disagreement_weight = 1;                    // lambda
};

struct Loss {
  Var loss;                            // [1, 1], smoothed and scaled
  double negative_log_likelihood = 0;  // of the targets, natural log, summed, not smoothed
  double smoothed = 0;                 // with smoothing, summed, not scaled
  double head_similarity = 0;  // the disagreement's sum over rows, the mean of all attentions, not scaled
};

class LanguageModel : public Model {
 public:
  virtual const VocabularyHead& vocabulary() const = 0;

  /// The states after each token of `target_in`: [N, d_model]. source: empty for a model that reads none.
  virtual Var states(Context& context, const Sequences& source, const Sequences& target_in) const = 0;

  /// A cache that has read nothing but the sources. The tape must evaluate.
  virtual void start(Context& context, const Sequences& source, StackCache& cache) const = 0;
  /// Reads more tokens of each sequence, in the order of rows.rows: their states [N, d_model].
  virtual Var extend(Context& context, std::span<const int32_t> tokens, const NewRows& rows,
                     StackCache& cache) const = 0;

  /// target_out[i] is what follows target_in.ids[i].
  Loss loss(Context& context, const Sequences& source, const Sequences& target_in,
            std::span<const int32_t> target_out, const LossOptions& options,
            VocabularyScratch& scratch) const;
  /// log p(target_out[i] | what is before it, the source) for every target token.
  std::vector<float> log_probabilities(Context& context, const Sequences& source, const Sequences& target_in,
                                       std::span<const int32_t> target_out, VocabularyScratch& scratch) const;
};

}  // namespace mh

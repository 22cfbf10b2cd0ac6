// LanguageModel: a model that predicts the next token: an encoder-decoder, given a source, or a causal
// decoder. Training, scoring and search use this interface.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/nn/disagreement.h"

namespace mh {

class StackCache;
class VocabularyScratch;
struct NewRows;

struct LossOptions {
  float label_smoothing = 0;  // share of the target's probability that is spread evenly over the vocabulary
  float scale = 1;            // the loss is scale * sum over tokens (training: 1 / tokens of the update)
  Disagreement disagreement = {};  // added to what is differentiated, not to `loss`
  float disagreement_weight = 1;   // lambda, the factor of the disagreement
};

struct Loss {
  Var loss;                            // [1, 1], smoothed and scaled
  double negative_log_likelihood = 0;  // of the targets, natural log, summed, not smoothed
  double smoothed = 0;                 // with smoothing, summed, not scaled
  /// The similarity of heads that a disagreement penalises: summed over rows, averaged over the attentions,
  /// not scaled.
  double head_similarity = 0;
};

class LanguageModel : public Model {
 public:
  /// Returns the states after each token of `target_in`: [N, d_model]. source: empty for a causal decoder.
  virtual Var states(Context& context, const Sequences& source, const Sequences& target_in) const = 0;

  /// Prepares a cache that has read the sources and nothing else. The tape must not record.
  virtual void start(Context& context, const Sequences& source, StackCache& cache) const = 0;
  /// Reads more tokens of each sequence, in the order of rows.rows, and returns their states [N, d_model].
  virtual Var extend(Context& context, std::span<const int32_t> tokens, const NewRows& rows,
                     StackCache& cache) const = 0;

  /// Returns the loss. target_out[i] is the token that should follow target_in.ids[i].
  Loss loss(Context& context, const Sequences& source, const Sequences& target_in,
            std::span<const int32_t> target_out, const LossOptions& options,
            VocabularyScratch& scratch) const;

  /// Returns log p(target_out[i] | source, earlier target tokens) for every target token.
  std::vector<float> log_probabilities(Context& context, const Sequences& source, const Sequences& target_in,
                                       std::span<const int32_t> target_out, VocabularyScratch& scratch) const;
};

}  // namespace mh

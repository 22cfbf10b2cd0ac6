// Counts what a whole encoder-decoder costs on one pair of sequences, or a causal model on one, forward: its attentions
// (nn/ledger.h) and everything between them.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/models/causal_model.h"
#include "multihead/models/encoder_decoder_config.h"
#include "multihead/nn/ledger.h"

namespace mh {

struct ModelLedger {
  /// "embeddings", then for each side its attentions (all layers together), "feed-forward" and "norms" (with
  /// the residual sums), then "vocabulary": logits and their softmax, and of a causal model that caps its logits "logit cap",
  /// and of one that classifies "labels" in their place, of one text.
  std::vector<LedgerPart> parts;
  /// The attentions of layer 0: the encoder's, the decoder's (causal), and cross-attention. A causal model has the second alone.
  Ledger encoder_self, decoder_self, cross;

  /// The sum of all parts; its `parameters` is the model's parameter_count().
  LedgerPart total() const;
};

/// Counts the parts below, for T rows of a stack, d = d_model and a vocabulary of V. Tokens are those of
/// the source and of the shifted target. Throws UsageError on a configuration with problems_of(), on more
/// tokens than the model reads, and on counts beyond 2^63.
///   feed-forward  2 d d_ff + d_ff + d parameters, 2 T d d_ff multiply-adds, T (2 d_ff + d) others (biases,
///                 activation); gelu and swish one exponential a number; a gate as much as its matrix and bias
///   norms         2 d parameters a norm with a bias, d without; 7 T d others a norm (mean, difference, square and its sum,
///                 division, gain, bias), without a bias 6, an RMS norm 4 (1 + w is stored as one gain); and T d for each
///                 residual sum. A sublayer has one norm, or two where its input and its output are normed; parallel sublayers
///                 that share a norm have one together
///   vocabulary    T d V multiply-adds, T V exponentials, 3 T V others (maximum, difference, sum); a bias V parameters and T V
///                 others
///   logit cap     2 T V others (by and times the cap), T V exponentials, one for each tanh
ModelLedger model_ledger(const EncoderDecoderConfig& config, int64_t source_tokens, int64_t target_tokens);
ModelLedger model_ledger(const CausalConfig& config, int64_t tokens);

}  // namespace mh

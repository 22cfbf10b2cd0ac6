// Counts what a whole encoder-decoder costs on one pair of sequences, forward: its attentions (nn/ledger.h)
// and everything between them.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/models/encoder_decoder_config.h"
#include "multihead/nn/ledger.h"

namespace mh {

struct ModelLedger {
  /// "embeddings", then for each side its attentions (all layers together), "feed-forward" and "norms" (with
  /// the residual sums), then "vocabulary": logits and their softmax.
  std::vector<LedgerPart> parts;
  /// The attentions of layer 0: the encoder's, the decoder's (causal), and cross-attention.
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
///                 division, gain, bias), and T d for each residual sum
///   vocabulary    T d V multiply-adds, T V exponentials, 3 T V others (maximum, difference, sum)
ModelLedger model_ledger(const EncoderDecoderConfig& config, int64_t source_tokens, int64_t target_tokens);

}  // namespace mh

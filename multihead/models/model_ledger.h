// What a whole encoder-decoder costs on one pair of sequences, forward: nn/ledger.h for each of its
// attentions, and what stands between them.
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
  /// Layer 0's attentions: of the encoder, of the decoder (causal), and between them.
  Ledger encoder_self, decoder_self, cross;

  /// parameters: the model's parameter_count().
  LedgerPart total() const;
};

/// Throws UsageError on a configuration that cannot be, more tokens than it reads, and counts beyond 2^63.
/// tokens: of the source, and of the shifted target.
///   feed-forward  2 d d_ff + d_ff + d parameters, 2 T d d_ff multiply-adds, T (2 d_ff + d) others (biases,
///                 activation); gelu and swish one exponential a number
///   norms         2 d parameters a norm; 7 T d others a norm (mean, difference, square and its sum,
///                 division, gain, bias), T d a residual sum
///   vocabulary    T d V multiply-adds, T V exponentials, 3 T V others (maximum, difference, sum)
ModelLedger model_ledger(const EncoderDecoderConfig& config, int64_t source_tokens, int64_t target_tokens);

}  // namespace mh

// The ops that read the vocabulary: the embedding of tokens, the logits, and the cross entropy of the tokens
// to predict (kernels/vocabulary.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"
#include "multihead/kernels/dropout.h"
#include "multihead/kernels/vocabulary.h"

namespace mh {

struct EmbedOptions {
  float scale = 1;
  ConstMatrixView positions;                     // [longest, d], added; empty: none
  std::span<const int32_t> positions_of;         // [N] row of `positions`
  const Parameter* learned_positions = nullptr;  // the parameter behind `positions`; null: they are fixed
  const Parameter* types = nullptr;              // [token types, d], added; null: none
  std::span<const int32_t> types_of = {};        // [N] row of `types`
  Dropout dropout;
};

/// dropout(scale * table[ids[i]] + positions[positions_of[i]] + types[types_of[i]]): [N, d]. The spans must
/// outlive the backward pass.
Var embed(Tape& tape, const Parameter& table, std::span<const int32_t> ids, const EmbedOptions& options);

/// What the output layer is made of. It outlives the tape's values.
struct OutputParameters {
  const PackedParameters& table;       // E [V, d], transposed
  ConstMatrixView bias = {};           // [1, V], which is not trained, or empty
  std::optional<float> soft_cap = {};  // of the logits (kernels/vocabulary.h)
};

/// states E^T + bias, softly capped: the logits of all tokens, [N, d] -> [N, V]. It stores them; cross_entropy() does
/// not.
Var logits(Tape& tape, Var states, const OutputParameters& output);

/// The logit of one token for each row alone, tokens[i] for row i: [N, d] -> [N, 1]. The span is copied.
Var logits_of(Tape& tape, Var states, std::span<const int32_t> tokens, const OutputParameters& output);

struct CrossEntropyOptions {
  std::span<const int32_t> targets;  // [N]
  float label_smoothing = 0;
  float scale = 1;
};

/// scale * sum of the smoothed cross entropies of logits(): [1, 1]; `sums` gets the unscaled
/// figures. The gradients of states and E are computed together with the value, so that logits are never
/// stored. Therefore, while parameters are trained, the total that is differentiated must contain this loss
/// with factor 1; any other is a UsageError of backward().
Var cross_entropy(Tape& tape, Var states, const OutputParameters& output, const CrossEntropyOptions& options,
                  VocabularyScratch& scratch, CrossEntropySums& sums);

}  // namespace mh

// Part of the attention kernel: a few queries against a long key/value cache, as in decoding.
//
// Other sequences are cut into tasks by their queries. Here there are too few, so the keys are cut, into
// chunks of a fixed size whatever the number of threads. A chunk is read once for all heads, row by row
// from end to end, and heads that share a key or value head use each row together. Each chunk yields
// maxima, sums of weights and sums of values; these partial softmaxes are merged in the order of the chunks
// ("Flash-Decoding", Dao et al. 2023).
#pragma once

#include <cstdint>

#include "multihead/kernels/attention.h"

namespace mh::detail {

constexpr int kDecodeQueries = 6;
constexpr int64_t kDecodeKeys = 256;  // keys of a chunk; a sequence with fewer keys is not cut

/// Whether sequence s is computed here.
bool attention_decodes(const AttentionInputs& inputs, int64_t s);

/// Writes output and lse of all sequences for which attention_decodes(). weight_offsets: of
/// attention_weight_offsets(); needed with bias.elements only.
void attention_decode(const AttentionInputs& inputs, const AttentionOutputs& outputs,
                      const int64_t* weight_offsets);

}  // namespace mh::detail

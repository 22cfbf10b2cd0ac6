// Inside of the attention kernel: a few queries against a long cache, as in decoding.
//
// Such a sequence has too few queries to be cut by them, so it is cut by its keys, in chunks of a fixed size
// whatever the number of threads. A chunk is read once for all heads, its rows from end to end as memory
// likes it, and heads that share a key or value head meet each of its rows together. Each chunk leaves
// maxima, sums of weights and sums of values; these partial softmaxes are merged in the order of the chunks
// ("Flash-Decoding", Dao et al. 2023).
#pragma once

#include <cstdint>

#include "multihead/kernels/attention.h"

namespace mh::detail {

constexpr int kDecodeQueries = 6;
constexpr int64_t kDecodeKeys = 256;  // a chunk; a sequence with fewer keys is not cut

/// Whether sequence s is computed in this way.
bool attention_decodes(const AttentionInputs& inputs, int64_t s);

/// Output and lse of all sequences that are. weight_offsets: attention_weight_offsets(), with bias.elements.
void attention_decode(const AttentionInputs& inputs, const AttentionOutputs& outputs,
                      const int64_t* weight_offsets);

}  // namespace mh::detail

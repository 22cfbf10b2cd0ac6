// Beam search over a key/value cache, for a batch of sentences.
//
// Every sentence keeps up to beam_size hypotheses that grow. In a step each of them names its best next
// tokens; all of a sentence's continuations are ranked by log-probability (ties: the earlier hypothesis, then
// the smaller token). Continuations by the end token among the first beam_size ranks are finished; the
// beam_size best others grow on. A sentence is done, and its rows leave the batch,
//   - when beam_size hypotheses have ended (as CTranslate2 with a length penalty and patience 1), or
//   - at the longest length, where the first beam_size continuations are kept as they are, ended or not, or
//   - when no growing hypothesis can come among the n best any more, because log-probabilities only fall:
//     then going on would not change the result.
// With beam_size 1 this is greedy search. A batch's decisions are those of each sentence alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/generate/search.h"
#include "multihead/models/decoding.h"

namespace mh {

/// For each sentence at most n_best hypotheses, the best score first (fewer when the vocabulary does not
/// yield more). `decoding` is started with the sources; one for many batches keeps its memory. The padding
/// token and the token that starts the decoder never come. prefixes: empty, or for each sentence the tokens
/// that its translation begins with; they count in lengths and log-probabilities. Throws UsageError on
/// options or prefixes that cannot be.
std::vector<std::vector<Hypothesis>> beam_search(Decoding& decoding, const Sequences& source,
                                                 const SearchOptions& options,
                                                 std::span<const std::vector<int32_t>> prefixes = {});

}  // namespace mh

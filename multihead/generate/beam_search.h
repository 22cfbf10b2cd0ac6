// Beam search over a key/value cache, for a batch of sentences. With beam_size 1 it is greedy search.
//
// Every sentence keeps up to beam_size growing hypotheses. In each step every hypothesis proposes its most
// probable next tokens, and all continuations of a sentence are ranked by log-probability (ties: the
// earlier hypothesis, then the smaller token). Continuations among the first beam_size ranks that end with
// the end token, or at which the caller's stop rule says so, are finished; of the others the beam_size best
// grow on. A sentence is done, and its rows leave the batch,
//
//   - when beam_size hypotheses have ended (as in CTranslate2 with a length penalty and patience 1), and early_stopping asks
//     for no better ones, or
//   - at the longest length, where the first beam_size continuations are kept as they are, ended or not, or
//   - when no growing hypothesis can become one of the n best any more, because log-probabilities only fall:
//     going on would not change the result.
//
// The result for a sentence does not depend on the other sentences of the batch. A causal model has prompts
// for sources: they are read in one pass, and count neither in lengths nor in log-probabilities.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/generate/search.h"
#include "multihead/models/decoding.h"

namespace mh {

/// Whether a hypothesis of sentence s ends with its last token, though that is no end token. It is called with
/// all tokens of a hypothesis, once for each token that may be added.
using StopRule = std::function<bool(int32_t s, std::span<const int32_t> tokens)>;

/// Returns at most n_best hypotheses for each sentence, the best score first (fewer when the vocabulary
/// does not yield more). It starts `decoding` with the sources; using one Decoding for many batches saves
/// memory allocations. A translator never generates its padding token and start token, unless the same token ends texts. prefixes:
/// empty, or for each sentence the tokens with which its translation must begin; they count in lengths and
/// log-probabilities, and the stop rule is not asked inside of them. Throws UsageError on invalid options or
/// prefixes.
std::vector<std::vector<Hypothesis>> beam_search(Decoding& decoding, const Sequences& source,
                                                 const SearchOptions& options,
                                                 std::span<const std::vector<int32_t>> prefixes = {},
                                                 const StopRule& stops = nullptr);

}  // namespace mh

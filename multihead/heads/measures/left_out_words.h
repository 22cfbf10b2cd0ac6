// What leaving out a source word does to a translation that is given: the prediction difference (Li et al. 2019, "On the Word
// Alignment from Neural Machine Translation", section 3.3), by which words are aligned without gold alignments.
//
//   D(t, s) = sum over the tokens y of target word t of  log p(y | y before it, x) - log p(y | y before it, x without s)
//
// Without s the rows of its tokens in what the encoder's first layer reads are 0, position and all. (Li et al. keep the position,
// and take the difference of probabilities, not of their logarithms; a word of several tokens has a product of them.)
#pragma once

#include <vector>

#include "multihead/data/alignment.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/models/language_model.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// D of each sentence of the block, [target words, source words]: of its ids, and of the words of `alignments`, whose links are not
/// read. Words that were cut, or have no token of their own, have 0. Throws as score() does.
std::vector<Tensor> prediction_differences(const LanguageModel& model, const CorpusBlock& block,
                                           const ObserveOptions& options = {});

/// Each target word goes with the source word without which it loses most (ties: the first), where that is more than least_fall.
Alignment strongest_differences(const Tensor& differences, float least_fall);

}  // namespace mh

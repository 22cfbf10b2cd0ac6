// Filters that change the logits l [V] of the next token before it is chosen. w is a token of the
// vocabulary; the probabilities p = softmax(l) are those of the logits that a filter is given.
//
//   suppress            l_w = -inf for the given tokens
//   repetition penalty  l_w = l_w < 0 ? l_w r : l_w / r for each w that occurred    Keskar et al. 2019
//   no repeated n-gram  l_w = -inf if w completes n tokens that occurred          Paulus et al. 2017
//   temperature         l_w = l_w / t
//   top-k               l_w = -inf unless l_w is at least the k-th largest logit    Fan et al. 2018
//   top-p               l_w = -inf unless the tokens that are more probable than w  Holtzman et al. 2020
//                       have less than p of the probability
//   min-p               l_w = -inf unless p_w >= m max_v p_v                        Nguyen et al. 2024
//
// They are applied in this order, as in transformers' generate(). Keskar et al. divide every logit, which
// makes a token with a negative one more probable; transformers multiplies these, and so does this library.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/generate/logits_filter_options.h"

namespace mh {

/// Changes the logits [V] of the token that follows `tokens`, the prompt and what was generated. Tokens
/// whose logit is -inf cannot come. A filter keeps no state, so any number of threads may call it at once.
using LogitsFilter = std::function<void(std::span<const int32_t> tokens, std::span<float> logits)>;

LogitsFilter suppress(std::vector<int32_t> tokens);
LogitsFilter repetition_penalty(double penalty);
LogitsFilter no_repeat_ngram(int32_t n);
LogitsFilter temperature(double temperature);
/// Tokens that share the k-th largest logit all stay.
LogitsFilter top_k(int32_t k);
/// The most probable token always stays. Of equally probable tokens the smaller one counts as more probable.
LogitsFilter top_p(double p);
LogitsFilter min_p(double share);

/// Returns the filters that change something, in the order above. Throws UsageError on options out of range.
std::vector<LogitsFilter> logits_filters(const LogitsFilterOptions& options);

/// Returns the token with the largest logit (ties: the smallest token). Throws Error when no logit is finite.
int32_t most_probable(std::span<const float> logits);
/// Returns the first token w with p_0 + ... + p_w > uniform, so that w comes with the probability p_w when
/// `uniform` is uniform in [0, 1). Throws Error when no logit is finite.
int32_t draw(std::span<const float> logits, double uniform);

}  // namespace mh

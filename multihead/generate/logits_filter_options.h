// How the logits of the next token are changed before it is chosen; logits_filter.h has the formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "multihead/io/config.h"

namespace mh {

/// The heading of settings that say how a token is chosen.
inline constexpr const char* kNextTokenGroup = "Next token";

/// A setting of searches and of sampling.
template <class V>
void visit_no_repeat_ngram(V& v, std::optional<int32_t>& n, const char* group) {
  v("no_repeat_ngram", n, {.low = 0},
    {.group = group,
     .help = "No sequence of N tokens comes twice in a text; 0: it may",
     .otherwise = "as the model says, else 0"});
}

/// The defaults change nothing.
struct LogitsFilterOptions {
  std::vector<int32_t> suppressed = {};
  double repetition_penalty = 1;
  /// Nothing: as the model's folder says (tasks/generate_text.h), else 0.
  std::optional<int32_t> no_repeat_ngram = std::nullopt;
  double temperature = 1;
  int32_t top_k = 0;
  double top_p = 1;  // 0: the most probable token alone
  double min_p = 0;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = kNextTokenGroup;
    // Beyond these a logit that is divided or multiplied would leave the range of float.
    constexpr Rule<double> kFactor{.low = 1e-6, .high = 1e6};
    v("temperature", temperature, kFactor,
      {.group = kGroup, .help = "Divide the logits by this; below 1: probable tokens get more probable"});
    v("top_k", top_k, {.low = 0},
      {.group = kGroup, .help = "Draw from the N most probable tokens; 0: from all"});
    v("top_p", top_p, {.low = 0, .high = 1},
      {.group = kGroup, .help = "Draw from the fewest most probable tokens whose probabilities sum to X"});
    v("min_p", min_p, {.low = 0, .high = 1},
      {.group = kGroup,
       .help = "Draw from the tokens at least X times as probable as the best one; 0: from all"});
    v("repetition_penalty", repetition_penalty, kFactor,
      {.group = kGroup, .help = "Above 1: what occurred before gets less probable"});
    visit_no_repeat_ngram(v, no_repeat_ngram, kGroup);
  }
};

}  // namespace mh

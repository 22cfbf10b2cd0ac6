// How well a causal model predicts texts, also texts that are longer than it can read.
//
// A text t_0 ... t_(n-1) is read in windows of C tokens that begin at 0, S, 2S, ... (C the context, S < C the
// stride) up to the one that reaches the end. Each token but t_0 is scored once, in the first window that has
// it, so it sees at least C - S tokens before it, or all that there are:
//
//   log p(t_i | t_b ... t_(i-1))     b: the beginning of that window
//   perplexity = exp(-1/N sum log p)   over the N scored tokens of all texts
//
// A small stride scores each token with a longer context, and reads each token C / S times. These are the
// windows of the page "Perplexity of fixed-length models" in the documentation of transformers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/io/config.h"
#include "multihead/models/language_model.h"
#include "multihead/nn/context.h"

namespace mh {

struct WindowOptions {
  int32_t context = 0;              // C, from 2 to the model's max_positions; 0: that many
  int32_t stride = 0;               // S, from 1 to C - 1; 0: half of C
  int64_t max_batch_tokens = 4096;  // most tokens of the windows of a batch; results do not depend on it
  Sites* sites = nullptr;
  std::function<void(int64_t tokens)> progress = nullptr;  // after each batch: how many are scored

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Windows of a text";
    v("context", context, {.low = 0, .high = 1 << 24},
      {.group = kGroup, .help = "Tokens of a window; 0: all that the model can read"});
    v("stride", stride, {.low = 0, .high = 1 << 24},
      {.group = kGroup, .help = "Tokens from a window to the next; 0: half of the context"});
    v("max_batch_tokens", max_batch_tokens, {.low = 1},
      {.group = kGroup, .help = "Most tokens in a batch", .rare = true});
  }
};

/// Returns log p of t_1 ... t_(n-1) for each text; a text of one token or none has none. Throws UsageError on
/// a model that is not causal, on options out of range, and on unknown tokens; Error when probabilities are not
/// finite.
std::vector<std::vector<float>> score_windows(const LanguageModel& model,
                                              std::span<const std::vector<int32_t>> texts,
                                              const WindowOptions& options = {});

/// exp(-1/N sum log p) over all of them; not a number when there are none. Throws Error when it is infinite.
double perplexity(std::span<const std::vector<float>> log_probabilities);

}  // namespace mh

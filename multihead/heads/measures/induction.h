// Previous-token and induction heads of causal models, on random tokens that are repeated (Olsson et al. 2022, "In-context Learning and
// Induction Heads", appendix "Head activation evaluators"): L random tokens r, and the same L again, so that nothing but copying
// helps to predict the second half.
//
//   previous token  the mean weight of a query on the token before it
//   induction       the mean weight of a query of the second half on the token that followed its own token in the first half, L - 1
//                   places back
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/nn/sites.h"

namespace mh {

struct InductionOptions {
  int sequences = 16;  // from 1
  int length = 50;     // L, from 4; less when the model reads no more
  uint64_t seed = 1;
  Sites* sites = nullptr;  // called before the weights are seen, e.g. SiteValues that mute heads
};

struct InductionScore {
  std::string attention;
  int head = 0;
  double previous_token = 0, induction = 0;

  std::string name() const { return attention + "." + std::to_string(head); }
};

/// Of every head, sorted by layer and head. The special tokens with which the tokenizer begins a text come first; the random
/// tokens are uniform over those of the vocabulary that are not special. Throws UsageError when the model is not causal, and when
/// it reads fewer than 8 tokens.
std::vector<InductionScore> induction_scores(const ModelFolder& folder, const InductionOptions& options = {});

}  // namespace mh

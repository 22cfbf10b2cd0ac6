// CachedText: one text that a causal model reads on and on over a key/value cache, a block of rows at a time, so that even composed
// attention (autograd/attention_maps.h) never holds the square of its length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/kernels/vocabulary.h"
#include "multihead/models/language_model.h"
#include "multihead/nn/context.h"
#include "multihead/nn/stack_cache.h"

namespace mh {

/// What is asked of the rows of tokens that are read.
struct AskedOfRows {
  std::span<const int32_t> targets =
      {};             // whose log p given the row and those before; one for each row, or none
  bool best = false;  // the most probable token after each row
};
struct PredictedTokens {
  std::vector<float> log_probabilities = {};
  std::vector<int32_t> best = {};
};

class CachedText {
 public:
  /// sites: called in all passes; may be null. REQUIRES: the model outlives this.
  CachedText(const LanguageModel& model, Sites* sites) : model_(model), sites_(sites) { begin(); }

  /// Nothing is read. number: that of the text in the list of `count` texts (docs/sites.md); -1: none of it.
  void begin(int64_t number = -1, int64_t count = 0);
  /// Forgets all but the first `length` tokens.
  void cut(int32_t length) { cache_.cut(length); }
  /// Reads more tokens. more: called after the sites of all passes; may be null.
  PredictedTokens read(std::span<const int32_t> tokens, Sites* more = nullptr, const AskedOfRows& asked = {});

 private:
  const LanguageModel& model_;
  Sites* sites_;
  int64_t number_ = -1, count_ = 0;
  Tape tape_;
  StackCache cache_;
  VocabularyScratch scratch_;
};

}  // namespace mh

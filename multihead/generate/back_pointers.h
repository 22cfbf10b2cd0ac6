// BackPointers: for each step of a beam search, the token of each row, its log-probability, and the row of the
// previous step that it continues. Hypotheses share their beginnings, so reordering a beam copies nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "multihead/kernels/vocabulary.h"

namespace mh {

class BackPointers {
 public:
  /// Adds a step: row i has token tokens[i] and continues row parents[i] of the step before.
  void add_step(std::span<const Candidate> tokens, std::span<const int32_t> parents) {
    begins_.push_back(tokens_.size());
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    parents_.insert(parents_.end(), parents.begin(), parents.end());
  }

  /// Returns the tokens of steps 1 to `step` that lead to row `row` of that step; step 0 holds the start
  /// tokens.
  std::vector<Candidate> path(int32_t step, int32_t row) const {
    std::vector<Candidate> tokens;
    tokens.reserve(static_cast<size_t>(step) + 1);  // room for one more
    for (; step > 0; --step) {
      const size_t at = begins_[static_cast<size_t>(step)] + static_cast<size_t>(row);
      tokens.push_back(tokens_[at]);
      row = parents_[at];
    }
    std::reverse(tokens.begin(), tokens.end());
    return tokens;
  }

 private:
  std::vector<size_t> begins_;  // of each step
  std::vector<Candidate> tokens_;
  std::vector<int32_t> parents_;
};

}  // namespace mh

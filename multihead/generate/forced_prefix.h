// ForcedPrefix: makes translations begin with given tokens. While a sentence is inside its prefix it has
// one hypothesis, whose only candidate is the next token of the prefix.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "multihead/kernels/vocabulary.h"
#include "multihead/models/decoding.h"

namespace mh {

class ForcedPrefix {
 public:
  /// prefixes: empty, or one for each sentence.
  ForcedPrefix(const LanguageModel& model, std::span<const std::vector<int32_t>> prefixes);

  /// Throws UsageError when the prefix of sentence s is longer than `longest`, has an end token or a
  /// token that the model does not have, or begins with another token than the one that all translations begin with.
  void check(int32_t s, int32_t longest, std::optional<int32_t> first) const;
  /// Whether the next token of this sentence is given by its prefix.
  bool holds(int32_t step, int32_t sentence) const {
    return step < longest_ && static_cast<size_t>(step) < prefixes_[static_cast<size_t>(sentence)].size();
  }
  /// Whether the next token of every row is given by a prefix.
  bool holds_all(int32_t step, std::span<const int32_t> sources) const;
  /// Replaces the candidates of rows whose next token is given, so that this token is the only one
  /// possible.
  void force(int32_t step, std::span<const int32_t> sources, Decoding& decoding, int32_t candidates_a_row,
             std::span<Candidate> candidates);

 private:
  const LanguageModel& model_;
  std::span<const std::vector<int32_t>> prefixes_;
  int32_t longest_ = 0;
  std::vector<int32_t> rows_, tokens_;  // of this step: the rows that are given their tokens, and these
};

}  // namespace mh

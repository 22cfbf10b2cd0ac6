// NextWords: what the rows of some states predict, a word each. Its logits are a site ("decoder.logits"): where somebody
// wants them they are made and passed on; else there is no matrix of logits [N, V] unless logits() is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/context.h"

namespace mh {

class NextWords {
 public:
  /// states: [N, d_model]; rows: their places. REQUIRES: the head and the tape's values outlive this.
  NextWords(const VocabularyHead& head, const Context& context, Var states, const RowPlaces& rows)
      : head_(head), context_(context), states_(states), rows_(rows) {}

  /// The logits [N, V] as the model goes on with them, made once. Throws Error when some are not finite, as the functions
  /// below do when probabilities are not.
  Var logits();
  /// Writes the k most probable tokens of each row, best first (ties: the smaller token first), to
  /// out[row * k ... row * k + k - 1]. Throws UsageError unless k is from 1 to kMaxCandidates.
  void best(const NextOptions& options, std::span<Candidate> out, VocabularyScratch& scratch);
  /// Returns log p(targets[i] | row i).
  std::vector<float> log_probabilities(std::span<const int32_t> targets, VocabularyScratch& scratch);
  /// Returns log p(targets[i] | row rows[i]).
  std::vector<float> log_probabilities(std::span<const int32_t> rows, std::span<const int32_t> targets,
                                       VocabularyScratch& scratch);
  /// The cross entropy of the targets as an op of the tape (autograd/vocabulary.h).
  Var cross_entropy(const CrossEntropyOptions& options, VocabularyScratch& scratch, CrossEntropySums& sums);

 private:
  /// What body() returns; where it throws NotFinite, the message blames edits if there are any.
  template <class Body>
  auto blaming(const Body& body) const;
  bool wanted() const { return context_.wants(head_.site()); }

  const VocabularyHead& head_;
  Context context_;
  Var states_;
  RowPlaces rows_;
  std::optional<Var> logits_;
};

}  // namespace mh

// From states to tokens:  logits = scale states E^T + bias, perhaps softly capped,  p = softmax(logits)
// E [V, d_model] is a matrix of its own, or the embedding's table (tied: Press and Wolf 2017). Only
// logits() stores the matrix of logits [N, V]; the other functions do not (kernels/vocabulary.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "multihead/autograd/vocabulary.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/nn/sites.h"

namespace mh {

struct NextOptions {
  int candidates = 1;  // k, at most kMaxCandidates
  /// Tokens that may not come next (probabilities are not renormalised).
  std::span<const int32_t> suppressed = {};
};
inline constexpr int kMaxCandidates = 256;
/// Throws UsageError unless there are 1 to kMaxCandidates.
void check_candidates(const NextOptions& options);

/// log sum_v exp(logits_v), and log softmax(logits)[token].
double log_sum_exp(std::span<const float> logits);
float log_probability(std::span<const float> logits, int32_t token);

class VocabularyHead {
 public:
  /// stack: "encoder" or "decoder", of whose states it predicts words; table: E; bias: [1, V], not trained, or null. All
  /// outlive this. soft_cap: of the logits. scale: of the states, T5's.
  VocabularyHead(std::string_view stack, const Parameter& table, const Parameter* bias,
                 std::optional<float> soft_cap = std::nullopt, float scale = 1)
      : stack_(stack),
        table_({&table}, RightFactor::kTransposed),
        bias_(bias),
        soft_cap_(soft_cap),
        scale_(scale) {
    table.read_by = ReadBy::kTransposedProduct;
  }

  /// That of its logits, which NextWords (models/next_words.h) calls.
  Site site() const { return {stack_, SitePart::kLogits}; }

  /// E.
  const Parameter& table() const { return *table_.parts()[0]; }
  int32_t size() const { return static_cast<int32_t>(table().value.rows()); }

  /// Writes the logits [states.rows, V]; for tests and small vocabularies. Throws Error when some are not
  /// finite, as the two functions below do when probabilities are not.
  void logits(ConstMatrixView states, MatrixView logits) const;
  /// The same as an op of the tape: [N, d_model] -> [N, V].
  Var logits(Tape& tape, Var states) const { return mh::logits(tape, scaled(tape, states), parameters()); }
  /// Of one token for each row alone: [N, d_model] -> [N, 1].
  Var logits_of(Tape& tape, Var states, std::span<const int32_t> tokens) const {
    return mh::logits_of(tape, scaled(tape, states), tokens, parameters());
  }
  /// Returns log p(targets[i] | states row i).
  std::vector<float> log_probabilities(ConstMatrixView states, std::span<const int32_t> targets,
                                       VocabularyScratch& scratch) const;
  /// Writes the k most probable tokens of each row of states, best first (ties: the smaller token first), to
  /// out[row * k ... row * k + k - 1].
  void best_next(ConstMatrixView states, const NextOptions& options, std::span<Candidate> out,
                 VocabularyScratch& scratch) const;
  /// The cross entropy as an op of the tape (autograd/vocabulary.h).
  Var cross_entropy(Tape& tape, Var states, const CrossEntropyOptions& options, VocabularyScratch& scratch,
                    CrossEntropySums& sums) const;

 private:
  Var scaled(Tape& tape, Var states) const;
  /// The same without a tape; kept: where they are, unless they are `states`.
  ConstMatrixView scaled(ConstMatrixView states, Tensor& kept) const;
  /// The bias; empty when there is none or it is all zeros.
  ConstMatrixView bias() const;
  OutputParameters parameters() const { return {.table = table_, .bias = bias(), .soft_cap = soft_cap_}; }
  OutputLayer layer() const;

  std::string_view stack_;
  PackedParameters table_;
  const Parameter* bias_;
  std::optional<float> soft_cap_;
  float scale_;
};

}  // namespace mh

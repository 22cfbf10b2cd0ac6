// ScorePass: a forward pass over some texts of a corpus that gives each its score (heads/importance/scored_texts.h), and the sum
// of scores to be differentiated.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/batch/batch.h"
#include "multihead/batch/teacher_forced.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/importance/scored_texts.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/next_words.h"
#include "multihead/nn/list_sites.h"

namespace mh {

/// Texts as one batch.
struct ScoredBatch {
  std::vector<int64_t> texts = {};    // their places in ScoredTexts
  std::vector<int64_t> numbers = {};  // their numbers in the corpus (ScoredText::number)
  Batch text = {};                    // what the encoder or the causal model reads
  TeacherForced target = {};          // of a translator
  std::vector<int32_t> rows = {};     // of what is read last, rising: those that predict something
  std::vector<int32_t> tokens = {};
  std::vector<int32_t> positions = {};  // of these rows in their texts
  Ragged predictions = {};              // how many each text has
};

ScoredBatch scored_batch(const Model& model, const ScoredTexts& texts, std::span<const int64_t> numbers);

/// In the order of the corpus, as many as have so many tokens at most.
std::vector<std::vector<int64_t>> plan_scored(const ScoredTexts& texts, int64_t max_batch_tokens);

struct ScorePassOptions {
  Sites* sites = nullptr;
  std::span<const LayerStart> starts = {};
};

class ScorePass {
 public:
  /// Clears the tape, whose memory the next pass uses again, and runs the model. REQUIRES: what is given outlives this. Throws
  /// Error when states are not finite.
  ScorePass(Tape& tape, const ScoredModel& model, ScoreKind kind, const ScoredBatch& batch,
            const ScorePassOptions& options);
  ScorePass(const ScorePass&) = delete;
  ScorePass& operator=(const ScorePass&) = delete;

  /// [S, dimension] of ScoreKind::kVectors: the texts' vectors.
  ConstMatrixView vectors() const { return states_.value(); }
  /// Each text's score. references: [S, dimension], the other vector of each cosine; nothing of the other kinds.
  std::vector<double> scores(ConstMatrixView references, VocabularyScratch& scratch);
  /// Their sum, [1, 1]. The references are copied.
  Var sum(ConstMatrixView references, VocabularyScratch& scratch);

 private:
  Var last_states(const ScoredModel& model);

  Tape& tape_;
  ScoreKind kind_;
  const ScoredBatch& batch_;
  ListSites listed_;
  Context context_;
  const VocabularyHead* head_ = nullptr;
  Var states_;  // vectors, logits of labels, or the states that words are predicted from, a row for each prediction
};

}  // namespace mh

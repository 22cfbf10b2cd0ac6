// AnswerPass: the number F that is asked of a text (heads_contributions.h), differentiable along the residual stream.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/nn/context.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct AnswerPassOptions {
  Sites* sites = nullptr;
  bool every_position = false, centred = false;  // ContributionOptions
};

class AnswerPass {
 public:
  /// Runs the model; puts the model's own answer into a text that has none. REQUIRES: model and sites outlive this.
  AnswerPass(const ModelFolder& folder, AnswerText& asked, const AnswerPassOptions& options);
  /// others: the vectors of the answer and of the wrong one, where there is one.
  AnswerPass(const SentenceModel& model, const AnswerText& asked, const Tensor& others,
             const AnswerPassOptions& options);
  AnswerPass(const AnswerPass&) = delete;
  AnswerPass& operator=(const AnswerPass&) = delete;

  /// F, [1, 1]; of every position, [n, 1]: of position i the token behind it.
  Var scores() const { return scores_; }
  /// The gradients of their sum.
  void backward();

 private:
  Var of_words(const ModelFolder& folder, AnswerText& asked, const AnswerPassOptions& options);
  Var of_labels(const ModelFolder& folder, AnswerText& asked);

  Tape tape_;
  Context context_;
  Batch text_, target_, picked_;
  Var scores_;
};

}  // namespace mh

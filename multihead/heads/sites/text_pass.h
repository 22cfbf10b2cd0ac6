// TextPass: a forward pass over a text that was observed, or over several, to be differentiated. What it predicts, of every kind
// of model:
//
//   a causal model        each token after the first, given those before it
//   a translator          the target's tokens and its end, given the source and those before
//   an encoder            each token, given all of them (of an encoder with a head for masked words)
//
//   const mh::Observation seen = mh::observe_text(folder, "two dogs run .", {}, {.tokens_alone = true});
//   mh::SiteValues values;
//   values.watch("*.gates");
//   mh::TextPass pass(*folder.model, seen, {.sites = &values, .mode = mh::Tape::Mode::kRecordValues});
//   pass.tape().backward(pass.log_probability());
//   values.gradient("encoder.0.self_attention.gates");   // [1, heads]; lives as long as the pass
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/batch/batch.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/models/model.h"

namespace mh {

struct TextPassOptions {
  Sites* sites = nullptr;
  Tape::Mode mode = Tape::Mode::kEvaluate;
};

class TextPass {
 public:
  /// Runs the model. REQUIRES: model and sites outlive this. Throws UsageError on sites that the model does not have, and
  /// on tokens of another model.
  TextPass(const Model& model, const Observation& seen, const TextPassOptions& options = {})
      : TextPass(model, OneText{&seen}, options) {}
  /// Of several texts as one batch, in this order. REQUIRES: at least one; all are of this model.
  TextPass(const Model& model, std::span<const Observation* const> seen, const TextPassOptions& options = {});
  TextPass(const TextPass&) = delete;
  TextPass& operator=(const TextPass&) = delete;

  Tape& tape() { return tape_; }
  /// [N, d_model]: the last states; of a translator the decoder's. N: rows of all texts.
  Var states() const { return states_; }
  /// Makes what is asked for at sites behind the last states (Model::call_output_sites).
  void call_output_sites();
  /// [N, V]: the logits of words. Throws UsageError when the model predicts none.
  Var logits();
  /// [S, labels] of the texts, or [N, labels] of its tokens: the logits of a classifier. Throws UsageError when the model gives
  /// no labels.
  Var label_logits();
  /// [n, 1]: log p of each token that the model predicts, in natural logarithms. Throws UsageError when it predicts
  /// none, and when all texts have too few tokens.
  Var log_probabilities();
  /// Their sum, [1, 1].
  Var log_probability();

 private:
  struct OneText {
    const Observation* seen;
    operator std::span<const Observation* const>() const { return {&seen, 1}; }
  };

  const Model& model_;
  Tape tape_;
  Context context_;
  Batch text_, target_;
  bool translates_;
  std::vector<int32_t> rows_, tokens_;  // what is predicted, and by which rows
  Var states_;
};

}  // namespace mh

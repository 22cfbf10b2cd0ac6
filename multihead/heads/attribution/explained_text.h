// ExplainedText: what one thing that a model says of a text is made of, and what it is when tokens are replaced
// (heads_attribution.h). ExplainedPass: that, differentiable, of one or several variants of the text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/batch/batch.h"
#include "multihead/heads/attribution/heads_attribution.h"
#include "multihead/heads/sites/text_pass.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// What stands for a token that is replaced: the mask token where the tokenizer has one, else its unknown token, else the end
/// token.
struct Replacement {
  int32_t id = 0;
  std::string token = {};
};
/// Throws UsageError when there is none of the three.
Replacement replacement_of(const ModelFolder& folder, const Tokenizer& tokenizer);

class ExplainedText {
 public:
  /// REQUIRES: the model outlives this. Throws UsageError as heads_attribution() does.
  ExplainedText(const ModelFolder& folder, const std::string& text, const AttributionOptions& options);
  ExplainedText(const SentenceModel& model, const std::string& text, const std::string& second,
                const AttributionOptions& options);

  const Model& model() const { return model_; }
  const std::vector<ReadToken>& tokens() const { return tokens_; }
  const std::vector<int32_t>& ids() const { return ids_; }  // of the tokens
  int64_t sources() const { return sources_; }
  int64_t targets() const { return std::ssize(ids_) - sources_; }  // 0 unless translates()
  /// Or is a classifier whose decoder reads the text, too.
  bool translates() const { return sources_ < std::ssize(ids_); }
  /// How much of F each row of the last states makes, as far as one can say: they sum to 1. As many as the last stack has rows.
  const std::vector<double>& rows() const { return rows_; }
  /// The tokens with those for which `replace` holds replaced, but for those that are kept.
  std::vector<int32_t> replaced(const std::function<bool(size_t)>& replace) const;
  std::vector<int32_t> all_replaced() const;
  /// F of variants of the tokens, as many tokens as these.
  std::vector<double> scores(std::span<const std::vector<int32_t>> variants, int64_t batch_tokens) const;
  /// Everything of AttributionReport that is known of the text.
  const AttributionReport& known() const { return known_; }

 private:
  friend class ExplainedPass;
  void add(const ObservedTokens& tokens, size_t count, TokenSide side);
  void choose(const ModelFolder& folder, const Observation& seen, const AttributionOptions& options);
  void choose_label(const ModelFolder& folder, const Observation& seen, const AttributionOptions& options);
  int32_t token_to_explain(const Tokenizer& tokenizer, const AttributionOptions& options) const;

  const Model& model_;
  const SentenceModel* sentences_ = nullptr;
  std::vector<ReadToken> tokens_;
  std::vector<int32_t> ids_;
  int64_t sources_ = 0;
  std::vector<double> rows_;
  std::vector<int32_t> types_;  // of the source tokens; empty: all 0
  int32_t row_ = 0;             // that predicts, in its sequence of the last stack
  int32_t explained_ = 0;       // the token, or the label
  bool of_label_ = false;
  Tensor second_;  // the vector of the second text
  Replacement of_source_, of_target_;
  AttributionReport known_;
};

class ExplainedPass {
 public:
  /// Runs the model. REQUIRES: text and sites outlive this.
  ExplainedPass(const ExplainedText& text, std::span<const std::vector<int32_t>> variants,
                const TextPassOptions& options = {});
  ExplainedPass(const ExplainedPass&) = delete;
  ExplainedPass& operator=(const ExplainedPass&) = delete;

  /// F of each variant, [S, 1].
  Var scores() const { return scores_; }
  /// The gradients of their sum.
  void backward();

 private:
  Tape tape_;
  Context context_;
  Batch source_, target_, picked_;
  Var scores_;
};

}  // namespace mh

// LabelHead: from the last states of a stack to labels, of each text or of each token. With r the row that is read,
//
//   logits = h W + b,   h = r, or Norm(activation(r W_d + b_d))
//
// as the classes ...ForSequenceClassification and ...ForTokenClassification of transformers have them: BERT reads what its
// pooler gives, RoBERTa, DistilBERT, ELECTRA, MPNet and ModernBERT have the layer W_d, and decoders read the last token, which alone has
// seen the whole text, and have no b. Encoder-decoders (BART, T5) have the layer W_d and read the end token.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/base/ragged.h"
#include "multihead/models/dense.h"
#include "multihead/nn/context.h"
#include "multihead/nn/norm_layer.h"
#include "multihead/nn/sites.h"

namespace mh {

/// Which rows r are read.
enum class LabelRows {
  kTokens,  // the state of each token
  kFirst,   // of a text the first state
  kMean,    // the mean of its states
  kPooled,  // what the model's pooler gives
  kLast,    // the state of its last token that is not the padding token; of padding tokens alone the first
  kEnd      // the state of its last end token
};

/// The layer before the output.
struct LabelDense {
  std::optional<Activation> activation = {};  // none: tanh
  Biases biases = Biases::kAll;               // whether there is b_d
  std::optional<NormConfig> norm = {};        // none: no norm
};

struct LabelConfig {
  int32_t labels = 2;
  LabelRows rows = LabelRows::kFirst;
  std::optional<LabelDense> dense = {};
  bool bias = true;  // whether there is b
};

class LabelHead {
 public:
  /// stack: "encoder" or "decoder", of whose states it makes labels. REQUIRES: it outlives this. special: the padding token of
  /// LabelRows::kLast, -1: there is none; the end token of kEnd.
  LabelHead(std::string_view stack, const LabelConfig& config, int64_t d_model, int32_t special);

  const LabelConfig& config() const { return config_; }
  /// Whether each token gets labels, and not each text.
  bool of_tokens() const { return config_.rows == LabelRows::kTokens; }
  /// The row of its logits that a token at a position of a sequence has, or the text that it stands in.
  int64_t row(const Ragged& tokens, int32_t sequence, int32_t position) const {
    return of_tokens() ? tokens.begin(sequence) + position : sequence;
  }
  /// The position whose state alone stands for a text of these tokens: of LabelRows::kLast and kEnd the last one, else the first.
  /// Throws UsageError on a text without an end token of kEnd. REQUIRES: there is a token.
  int32_t position(std::span<const int32_t> ids) const;
  /// The site of its logits.
  Site site() const { return {stack_, of_tokens() ? SitePart::kTokenLabels : SitePart::kLabels}; }
  /// The logits, a site: [S, labels] of texts or [N, labels] of tokens. rows: the last states [N, d_model], or where those are
  /// pooled [S, d_model]. Throws UsageError on a text without tokens, Error when the logits are not finite.
  Var logits(Context& context, Var rows, const Sequences& tokens) const;
  void visit(const ParameterVisitor& visitor);

 private:
  std::vector<int32_t> text_rows(const Sequences& tokens) const;

  std::string_view stack_;
  LabelConfig config_;
  int32_t special_;
  std::unique_ptr<Dense> dense_;
  std::optional<NormLayer> norm_;
  Parameter w_, b_;  // [d_model, labels], [1, labels]
  Affine output_;
};

/// The first row of each sequence: [N, d] -> [S, d]. Throws UsageError on one without tokens.
Var first_rows(Tape& tape, Var states, const Sequences& tokens);

}  // namespace mh

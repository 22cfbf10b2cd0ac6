// EncoderModel: an encoder without a decoder (BERT, Devlin et al. 2019). Every token sees the whole
// sequence; the states are [N, d_model]. On top may stand a pooler, which gives one row for each sequence,
// a head that predicts masked words, and one that gives labels. Embeddings of another width than the states are multiplied by
// a matrix first (ELECTRA, Clark et al. 2020).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/models/config_names.h"
#include "multihead/models/dense.h"
#include "multihead/models/label_head.h"
#include "multihead/models/model.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/stack.h"

namespace mh {

/// The head that predicts masked words: from states x, Norm(activation(x W + b)), as wide as the embeddings, times their table.
struct MaskedWordsConfig {
  Activation activation = Activation::kGelu;
  Biases biases = Biases::kAll;  // whether there is b; its norm is as those of the stack
};

struct EncoderConfig {
  EmbeddingConfig embedding = {};  // vocabulary, token types, norm; its d_model may differ from the stack's
  Positions positions = Positions::kLearned;  // added to embeddings, or used by the stack's attentions
  int32_t max_positions = 512;
  int32_t position_offset = 0;  // rows of a learned table before the row of position 0
  StackConfig stack = {};       // its name is "encoder"; its masks are none or local
  bool pooler = false;
  std::optional<MaskedWordsConfig> masked_words = std::nullopt;  // unset: there is no such head
  std::optional<LabelConfig> labels = std::nullopt;              // unset: it is no classifier
  int32_t pad_id = -1;                                           // -1: none
};

/// Returns everything that is wrong with a configuration, one clause each; empty when a model can be built.
std::vector<std::string> problems_of(const EncoderConfig& config, const ConfigNames& names = {});
/// Returns a lower bound of the number of parameters. It is a double, since a configuration from a file may
/// ask for more than an integer can count.
double least_parameters(const EncoderConfig& config);

class EncoderModel final : public Model {
 public:
  /// All weights are 0. Throws UsageError when the configuration has problems_of().
  explicit EncoderModel(const EncoderConfig& config);

  const EncoderConfig& config() const { return config_; }
  ModelKind kind() const override { return ModelKind::kEncoder; }
  ModelFacts facts() const override;
  EmbeddingConfig embedding_config() const override { return config_.embedding; }
  std::unique_ptr<Model> with_heads(const HeadsOfAttentions& heads) const override;

  /// Returns the states [N, d_model]. Throws UsageError on tokens, types and lengths that the model does not
  /// have.
  Var states(Context& context, const Sequences& tokens) const;
  /// Returns tanh(x W + b) of the first state x of each sequence: [S, d_model]. Throws UsageError when the
  /// model has no pooler or a sequence no tokens, Error when x W + b is not finite.
  Var pooled(Context& context, Var states, const Sequences& tokens) const;
  /// Of the words in place of each token.
  bool predicts() const override { return words_ != nullptr; }
  const VocabularyHead& vocabulary() const override;
  /// Norm(activation(x W + b)), [N, d_model] of the embeddings.
  Var word_states(const Context& context, Var states) const override;
  bool pools() const override { return pooler_ != nullptr; }
  void call_pooled(Context& context, Var states, const Sequences& tokens) const override;
  const LabelHead* label_head() const override { return labels_.get(); }

  using Model::visit;
  void visit(const ParameterVisitor& visitor) override;

 private:
  EncoderModel(const EncoderConfig& config, DropoutStreams streams);
  Var last_states(Context& context, const Sequences& text, const Sequences& target) const override;
  Var label_rows(Context& context, Var states, const Sequences& rows) const override;
  std::vector<Stack*> stacks() override { return {&stack_}; }

  struct MaskedWords {
    MaskedWords(const EncoderConfig& config, const Parameter& table);
    Dense dense;
    NormLayer norm;
    Parameter bias;  // [1, V]
    VocabularyHead head;
  };
  const MaskedWords& words() const;

  EncoderConfig config_;
  Embedding embedding_;
  PositionTable positions_;
  std::unique_ptr<Dense> projection_;  // of embeddings to states; null: they are equally wide
  Stack stack_;
  std::unique_ptr<Dense> pooler_;
  std::unique_ptr<MaskedWords> words_;
  std::unique_ptr<LabelHead> labels_;
};

}  // namespace mh

// An encoder by itself (BERT, Devlin et al. 2019): states of all tokens, each having seen the whole sequence; and what
// may stand on top: a pooler, and a head that says which words were masked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/stack.h"

namespace mh {

struct EncoderConfig {
  EmbeddingConfig embedding = {};             // vocabulary, d_model, kinds of token, norm
  Positions positions = Positions::kLearned;  // added to embeddings, or the stack's
  int32_t max_positions = 512;
  int32_t position_offset = 0;  // rows of a learned table before that of position 0
  StackConfig stack = {};       // "encoder"; without a mask
  bool pooler = false;
  /// Of the head for masked words: what stands between its matrix and its norm; unset: there is no such head.
  std::optional<Activation> masked_words = std::nullopt;
  int32_t pad_id = -1;  // -1: there is none
};

/// All that is wrong with a configuration, one clause each; empty when it can be built.
std::vector<std::string> problems_of(const EncoderConfig& config);
/// A lower bound of its numbers, in double: a configuration may claim more than any integer holds.
double least_parameters(const EncoderConfig& config);

class EncoderModel final : public Model {
 public:
  /// Weights are zero. Throws UsageError on a configuration that cannot be.
  explicit EncoderModel(const EncoderConfig& config);

  const EncoderConfig& config() const { return config_; }
  ModelFacts facts() const override;
  Var read(Context& context, const Sequences& text, const Sequences& target) const override;

  /// [N, d_model]. types: the kind of each token, or empty for kind 0. Throws UsageError on tokens, kinds and
  /// lengths that the model cannot take.
  Var states(Context& context, const Sequences& tokens, std::span<const int32_t> types = {}) const;
  /// tanh(x_first W + b) of each sequence: [S, d_model]. Throws UsageError when the model has no pooler or a
  /// sequence no tokens.
  Tensor pooled(Context& context, Var states, const Sequences& tokens) const;
  /// Norm(activation(x W + b)), from which masked_words() says the words: [N, d_model]. Throws UsageError when the
  /// model has no such head.
  Var before_words(Context& context, Var states) const;
  const VocabularyHead& masked_words() const;

  using Model::visit;
  void visit(const ParameterVisitor& visitor) override;

 private:
  EncoderModel(const EncoderConfig& config, DropoutSites sites);
  std::vector<Stack*> stacks() override { return {&stack_}; }

  /// x W + b with W [d_model, d_model].
  struct Dense {
    explicit Dense(int64_t d_model) : w(d_model, d_model), b(1, d_model), affine({&w}, {&b}) {}
    Parameter w, b;
    Affine affine;
  };
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
  Stack stack_;
  std::unique_ptr<Dense> pooler_;
  std::unique_ptr<MaskedWords> words_;
};

}  // namespace mh

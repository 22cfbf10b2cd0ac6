// EncoderDecoder: the Transformer of "Attention is all you need" (Vaswani et al. 2017). The encoder turns
// the N source tokens into a memory [N, d_model]; the decoder reads the memory and the target so far, and
// says which token comes next. A classifier (BartForSequenceClassification) reads one text with both, the decoder shifted by one
// token, so that row i has read the text before token i, and says its labels in place of a next token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/encoder_decoder_config.h"
#include "multihead/models/language_model.h"
#include "multihead/models/vocabulary_head.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/stack.h"

namespace mh {

class EncoderDecoder final : public LanguageModel {
 public:
  /// All weights are 0 until initialise() is called or a folder is read. Throws UsageError when the
  /// configuration has problems_of().
  explicit EncoderDecoder(const EncoderDecoderConfig& config);

  const EncoderDecoderConfig& config() const { return config_; }
  /// Sets random weights, a function of the seed: Xavier uniform for projections, N(0, s^2 / d_model) with
  /// s = `embedding_scale` for embeddings. With s below 1 the positional encoding that is added to them
  /// weighs more at first.
  void initialise(uint64_t seed, double embedding_scale = 1);

  /// Runs the encoder; returns the memory [N source tokens, d_model].
  Var encode(Context& context, const Sequences& source) const;
  /// Runs the decoder on a target that is shifted by one (batch/teacher_forced.h); returns its states
  /// [N target tokens, d_model].
  Var decode(Context& context, const Sequences& target_in, Var memory, const Sequences& source) const;

  /// kEncoder of a classifier.
  ModelKind kind() const override { return labels_ ? ModelKind::kEncoder : ModelKind::kTranslator; }
  ModelFacts facts() const override;
  EmbeddingConfig embedding_config() const override;
  std::unique_ptr<Model> with_heads(const HeadsOfAttentions& heads) const override;
  /// Throws UsageError when it is a classifier.
  const VocabularyHead& vocabulary() const override;
  const LabelHead* label_head() const override { return labels_.get(); }
  /// The ids that the decoder of a classifier reads with these texts.
  std::vector<int32_t> shifted(const Sequences& text) const;
  Var states(Context& context, const Sequences& source, const Sequences& target_in) const override;
  void start(Context& context, const Sequences& source, StackCache& cache) const override;
  Var extend(Context& context, std::span<const int32_t> tokens, const NewRows& rows,
             StackCache& cache) const override;

  using Model::visit;
  void visit(const ParameterVisitor& visitor) override;

 private:
  EncoderDecoder(const EncoderDecoderConfig& config, DropoutStreams streams);
  Var last_states(Context& context, const Sequences& text, const Sequences& target) const override;
  std::vector<Stack*> stacks() override { return {&encoder_, &decoder_}; }
  const PositionTable& target_positions() const {
    return target_positions_ ? *target_positions_ : positions_;
  }

  EncoderDecoderConfig config_;
  Embedding embedding_;  // of the source
  Embedding target_embedding_;
  std::unique_ptr<Parameter> output_;  // [V, d_model]; null: tied to the target's embedding
  std::unique_ptr<Parameter>
      logits_bias_;          // [1, V]; zero unless a loaded model has one; not trained; null: none
  PositionTable positions_;  // of the source, and of the target unless it has its own
  std::unique_ptr<PositionTable> target_positions_;  // null: the source's
  Stack encoder_;
  Stack decoder_;
  VocabularyHead head_;
  std::unique_ptr<LabelHead> labels_;
};

}  // namespace mh

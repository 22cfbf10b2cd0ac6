// The encoder-decoder of "Attention is all you need" (Vaswani et al. 2017).
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
  /// Weights are zero until initialise() or a folder's are read. Throws UsageError on a configuration that
  /// cannot be.
  explicit EncoderDecoder(const EncoderDecoderConfig& config);

  const EncoderDecoderConfig& config() const { return config_; }
  /// Random weights, a function of the seed: Xavier uniform for projections, N(0, s^2 / d_model) with s the
  /// `embedding_scale` for embeddings. Below 1 the positions, which are added to them, are louder at first.
  void initialise(uint64_t seed, double embedding_scale = 1);

  /// The memory: [N source tokens, d_model].
  Var encode(Context& context, const Sequences& source) const;
  /// The decoder's states for a shifted target: [N target tokens, d_model].
  Var decode(Context& context, const Sequences& target_in, Var memory, const Sequences& source) const;

  ModelFacts facts() const override;
  Var read(Context& context, const Sequences& text, const Sequences& target) const override;
  const VocabularyHead& vocabulary() const override { return head_; }
  Var states(Context& context, const Sequences& source, const Sequences& target_in) const override;
  void start(Context& context, const Sequences& source, StackCache& cache) const override;
  Var extend(Context& context, std::span<const int32_t> tokens, const NewRows& rows,
             StackCache& cache) const override;

  using Model::visit;
  void visit(const ParameterVisitor& visitor) override;

 private:
  EncoderDecoder(const EncoderDecoderConfig& config, DropoutSites sites);
  std::vector<Stack*> stacks() override { return {&encoder_, &decoder_}; }
  const Embedding& target_embedding() const { return target_embedding_ ? *target_embedding_ : embedding_; }
  const PositionTable& target_positions() const {
    return target_positions_ ? *target_positions_ : positions_;
  }

  EncoderDecoderConfig config_;
  Embedding embedding_;                          // source, and target when they are shared
  std::unique_ptr<Embedding> target_embedding_;  // null: shared
  std::unique_ptr<Parameter> output_;            // [V, d_model]; null: tied to the target's embedding
  Parameter logits_bias_;                        // [1, V]; zero unless a loaded model has one; not trained
  PositionTable positions_;                      // of the source, and of the target unless it learns its own
  std::unique_ptr<PositionTable> target_positions_;  // null: the source's
  Stack encoder_;
  Stack decoder_;
  VocabularyHead head_;
};

}  // namespace mh

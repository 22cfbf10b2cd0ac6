// The encoder-decoder of "Attention is all you need" (Vaswani et al. 2017).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/kernels/vocabulary.h"
#include "multihead/models/encoder_decoder_config.h"
#include "multihead/nn/context.h"
#include "multihead/nn/decoder.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/encoder.h"

namespace mh {

/// Inference is const, and any number of threads may infer at once; the work inside is spread over the pool.
/// A weight is packed by its first use. Training is for one thread at a time.
class EncoderDecoder {
 public:
  /// Weights are zero until initialise() or load_transformer(). Throws UsageError on a configuration that
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

  /// Embedded target tokens that all stand at `position`: [R, d_model]. For cached decoding.
  Var embed_target(Context& context, std::span<const int32_t> tokens, int32_t position) const;

  struct LossOptions {
    float label_smoothing = 0;  // this much of the target's mass is spread evenly over the vocabulary
    float scale = 1;            // the loss is scale * sum over tokens (training: 1 / tokens of the update)
    Disagreement disagreement = Disagreement::kNone;  // added to what is differentiated, not to `loss`
    float disagreement_weight = 1;                    // lambda
  };
  struct Loss {
    Var loss;                        // [1, 1], smoothed and scaled
    double negative_log_likelihood;  // of the targets, natural log, summed, not smoothed
    double smoothed;                 // with smoothing, summed, not scaled
    double alike_heads = 0;  // the disagreement's sum over rows, the mean of all attentions, not scaled
  };
  /// target_out[i] is what follows target_in.ids[i].
  Loss loss(Context& context, const Sequences& source, const Sequences& target_in,
            std::span<const int32_t> target_out, const LossOptions& options,
            VocabularyScratch& scratch) const;
  /// log p(target_out[i] | what is before it, the source) for every target token.
  std::vector<float> log_probabilities(Context& context, const Sequences& source, const Sequences& target_in,
                                       std::span<const int32_t> target_out, VocabularyScratch& scratch) const;
  /// [states.rows, vocabulary]; for tests and small things: loss() and best_next() never make this matrix.
  void logits(ConstMatrixView states, MatrixView logits) const;

  struct NextOptions {
    int candidates = 1;  // k, at most kMaxCandidates
    std::span<const int32_t>
        suppressed;  // tokens that may not come next (probabilities are not renormalised)
  };
  /// The k most probable next tokens of each row of decoder states, best first (ties: the smaller token
  /// first): out[row * k ... row * k + k). The matrix of logits is never written.
  void best_next(ConstMatrixView states, const NextOptions& options, std::span<Candidate> out,
                 VocabularyScratch& scratch) const;
  static constexpr int kMaxCandidates = 256;

  /// "encoder.3.self_attention", ... in order: what observers see and interventions name; with the number of
  /// heads.
  struct AttentionName {
    std::string name;
    int heads;
  };
  std::vector<AttentionName> attentions() const;
  /// Throws UsageError on a name that is none of these, saying what there is.
  MultiHeadAttention& attention(std::string_view name);
  const MultiHeadAttention& attention(std::string_view name) const;
  /// Throws UsageError naming what this model does not have, and what it has.
  void check(const Interventions& interventions) const;

  /// Every parameter once, with its name. "logits_bias" is stored but neither trained nor counted.
  void visit(const ParameterVisitor& visitor);
  void visit(const ConstParameterVisitor& visitor) const;
  int64_t parameter_count() const;

  Encoder& encoder() { return encoder_; }
  Decoder& decoder() { return decoder_; }
  const Decoder& decoder() const { return decoder_; }

 private:
  EncoderDecoder(const EncoderDecoderConfig& config, DropoutSites sites);
  [[noreturn]] void throw_no_attention(std::string_view name) const;
  /// Empty when it is zero throughout.
  ConstMatrixView output_bias() const;
  OutputLayer output_layer() const;
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
  Encoder encoder_;
  Decoder decoder_;
  PackedParameters output_packed_;
};

}  // namespace mh

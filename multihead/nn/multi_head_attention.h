// MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O,  head_i = Attention(x W_i^Q, m W_i^K, m W_i^V)
//                                                                       (Vaswani et al. 2017, section 3.2.2)
// How x becomes Q, K and V of all heads is the geometry's (head_geometry.h); this is what happens to them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "multihead/autograd/affine.h"
#include "multihead/nn/attention_positions.h"
#include "multihead/nn/context.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/stack_config.h"
#include "multihead/nn/weighted_values.h"

namespace mh {

struct MultiHeadAttentionConfig {
  int d_model = 512;
  int d_out = 0;  // numbers in a row that W^O writes; 0: d_model, as a residual sum needs
  HeadGeometry geometry = {};
  float weights_dropout = 0;               // rate
  Positions positions = Positions::kNone;  // those added to embeddings are none of its business
  RotaryOptions rotary = {};               // of Positions::kRotary
  AttentionDirection direction = AttentionDirection::kBidirectional;  // of self-attention
  int layer = 0;                                                      // which of the stack
};

/// Keys and values that are ready: of a memory (cross-attention), or gathered in a cache (self-attention).
struct KeysAndValues {
  Var keys;                          // [Nk, key_heads * d_key]
  Var values;                        // [Nk, value_heads * d_value]
  std::span<const int32_t> offsets;  // [S + 1] which keys belong to which sequence
  std::span<const int32_t> rows;     // AttentionInputs::key_rows
};

class MultiHeadAttention {
 public:
  /// `name` is what observers and interventions call it. Throws UsageError when a size cannot be.
  MultiHeadAttention(std::string name, const MultiHeadAttentionConfig& config, DropoutSites& sites);
  MultiHeadAttention(const MultiHeadAttention&) = delete;
  MultiHeadAttention& operator=(const MultiHeadAttention&) = delete;

  const std::string& name() const { return name_; }
  /// With nothing left to defaults.
  const HeadGeometry& geometry() const { return config_.geometry; }
  int heads() const { return config_.geometry.heads; }
  const MultiHeadAttentionConfig& config() const { return config_; }
  /// Numbers in a row of keys, and in a row of values.
  int64_t key_width() const;
  int64_t value_width() const;

  /// Self-attention, W^O applied: [N, d_model] -> [N, d_out]. `weights`: null, or where the weights are to be
  /// found until the tape is cleared (its name is this attention's).
  Var self(Context& context, Var x, const Sequences& rows, const Mask& mask,
           ObservedWeights* weights = nullptr) const;
  /// Attention to a memory [Nk, d_model] whose sequences begin at `offsets`, W^O applied: [N, d_out].
  Var cross(Context& context, Var x, const Sequences& rows, Var memory, std::span<const int32_t> offsets,
            ObservedWeights* weights = nullptr) const;

  // The same in parts, for a stack, which applies W^O together with the residual sum and norm, and keeps keys
  // and values in a cache.

  /// Self-attention: Concat(head_1, ...) before W^O, [N, heads * d_value].
  Var self_heads(Context& context, Var x, const Sequences& rows, const Mask& mask,
                 ObservedWeights* weights = nullptr) const;
  /// Queries, keys and values of the same rows, which stand at these places.
  Heads::Projected project(Context& context, Var x, const RowPlaces& places) const;
  /// For queries that meet keys from elsewhere.
  Var project_queries(Context& context, Var x) const;
  KeysAndValues project_memory(Context& context, Var memory, std::span<const int32_t> offsets) const;
  /// Concat(head_1, ...) for queries against keys that are ready. [Nq, heads * d_value].
  Var attend(Context& context, Var q, const Sequences& rows, const KeysAndValues& memory, const Mask& mask,
             ObservedWeights* weights = nullptr) const;
  /// W^O, for the residual connection to apply; null when the heads' outputs are taken as they are.
  const Affine* output() const { return w_o_.value.size() > 0 ? &output_ : nullptr; }

  /// Uses what `other` learns about positions; this attention then has no such parameters of its own.
  void share_positions(const MultiHeadAttention& other);

  void initialise(Random& random);
  void visit(const std::string& name, const ParameterVisitor& visitor);
  void visit(const std::string& name, const ConstParameterVisitor& visitor) const;

 private:
  Var output_of(Context& context, Var heads) const;
  void show_rows(Context& context, ProjectedTo to, Var rows) const;
  /// What context.similarity asks for. q and memory: as attend() has them.
  void record_head_similarity(Context& context, Var q, const KeysAndValues& memory,
                              const AttentionInputs& inputs, const LearnedBias& bias, Var outputs) const;

  std::string name_;
  MultiHeadAttentionConfig config_;  // its geometry completed()
  uint32_t site_;
  std::unique_ptr<Heads> heads_;
  std::shared_ptr<AttentionPositions> positions_;  // null: nothing to do
  bool owns_positions_ = true;
  std::unique_ptr<WeightedValues> values_;
  Parameter w_o_, b_o_;
  Affine output_;
};

}  // namespace mh

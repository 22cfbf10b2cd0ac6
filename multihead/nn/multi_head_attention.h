// MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O,  head_i = Attention(x W_i^Q, m W_i^K, m W_i^V)
//                                                                       (Vaswani et al. 2017, section 3.2.2)
// Every head reads the whole row: W^Q = [W_1^Q | ... | W_h^Q] is one matrix because one product is faster
// than h.
#pragma once

#include <string>

#include "multihead/autograd/affine.h"
#include "multihead/nn/context.h"
#include "multihead/nn/transformer_layer.h"

namespace mh {

struct MultiHeadAttentionConfig {
  int d_model = 512;
  int heads = 8;
  int d_key = 0;              // 0: d_model / heads
  int d_value = 0;            // 0: d_key
  float weights_dropout = 0;  // rate
};

/// Keys and values that are ready: of a memory (cross-attention), or gathered in a cache (self-attention).
struct KeysAndValues {
  Var keys;                          // [Nk, heads * d_key]
  Var values;                        // [Nk, heads * d_value]
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
  const MultiHeadAttentionConfig& config() const { return config_; }

  /// Self-attention: Concat(head_1, ...) before W^O, [N, heads * d_value].
  Var self(Context& context, Var x, const Sequences& rows, const Mask& mask);
  /// x W^Q, x W^K and x W^V by one product.
  struct Projected {
    Var q, k, v;
  };
  Projected project(Context& context, Var x);
  /// x W^Q for queries that meet keys from elsewhere.
  Var project_queries(Context& context, Var x);
  /// m W^K and m W^V by one product.
  KeysAndValues project_memory(Context& context, Var memory, std::span<const int32_t> offsets);
  /// Concat(head_1, ...) for queries against keys that are ready. [Nq, heads * d_value].
  Var attend(Context& context, Var q, const Sequences& rows, const KeysAndValues& memory, const Mask& mask);
  /// W^O, for the residual connection to apply.
  Affine& output() { return output_; }

  void initialise(Random& random);
  void visit(const std::string& name, const ParameterVisitor& visitor);

 private:
  std::string name_;
  MultiHeadAttentionConfig config_;
  uint32_t site_;
  Parameter w_q_, w_k_, w_v_, w_o_;
  Parameter b_q_, b_k_, b_v_, b_o_;
  Affine all_, queries_, memory_, output_;
};

}  // namespace mh

// The encoder: layers of self-attention and feed-forward.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "multihead/nn/feed_forward.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/transformer_layer.h"

namespace mh {

/// Called for every attention with its name and number of heads.
using AttentionVisitor = std::function<void(const MultiHeadAttention& attention)>;

class EncoderLayer {
 public:
  /// `name`: "encoder.3".
  EncoderLayer(const std::string& name, const TransformerLayerConfig& config, DropoutSites& sites);

  /// [N, d_model] -> [N, d_model].
  Var forward(Context& context, Var x, const Sequences& rows) const;

  void initialise(Random& random);
  void visit(const std::string& name, const ParameterVisitor& visitor);
  void visit_attentions(const AttentionVisitor& visitor) const { visitor(attention_); }
  MultiHeadAttention& self_attention() { return attention_; }

 private:
  MultiHeadAttention attention_;
  Residual attention_residual_;
  FeedForward feed_forward_;
  Residual feed_forward_residual_;
};

class Encoder {
 public:
  Encoder(int layers, const TransformerLayerConfig& config, DropoutSites& sites);

  /// Embedded rows [N, d_model] -> the memory [N, d_model].
  Var forward(Context& context, Var x, const Sequences& rows) const;

  void initialise(Random& random);
  /// Names begin with "encoder.".
  void visit(const ParameterVisitor& visitor);
  void visit_attentions(const AttentionVisitor& visitor) const;
  /// By its name; null when there is no such attention.
  MultiHeadAttention* find_attention(std::string_view name);

 private:
  std::deque<EncoderLayer> layers_;
  std::unique_ptr<LayerNorm> final_norm_;  // pre-norm only
};

}  // namespace mh

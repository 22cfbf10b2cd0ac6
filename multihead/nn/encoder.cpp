#include "multihead/nn/encoder.h"

#include <fmt/format.h>

#include <algorithm>

namespace mh {

EncoderLayer::EncoderLayer(const std::string& name, const TransformerLayerConfig& config, DropoutSites& sites)
    : attention_(name + ".self_attention",
                 {.d_model = config.d_model,
                  .geometry = config.geometry,
                  .weights_dropout = config.dropout.weights,
                  .positions = config.positions,
                  .sight = Sight::kBoth,
                  .layer = config.layer},
                 sites),
      attention_residual_(config, sites),
      feed_forward_(config, sites),
      feed_forward_residual_(config, sites) {}

Var EncoderLayer::forward(Context& context, Var x, const Sequences& rows) const {
  const Var heads = attention_.self(context, attention_residual_.before(context, x), rows, Mask::none());
  x = attention_residual_.after(context, heads, attention_.output(), x, rows);
  const Var hidden = feed_forward_.hidden(context, feed_forward_residual_.before(context, x), rows);
  return feed_forward_residual_.after(context, hidden, feed_forward_.second(), x, rows);
}

void EncoderLayer::initialise(Random& random) {
  attention_.initialise(random);
  feed_forward_.initialise(random);
}

void EncoderLayer::visit(const std::string& name, const ParameterVisitor& visitor) {
  attention_.visit(name + ".self_attention", visitor);
  attention_residual_.visit(name + ".self_attention_norm", visitor);
  feed_forward_.visit(name + ".feed_forward", visitor);
  feed_forward_residual_.visit(name + ".feed_forward_norm", visitor);
}

Encoder::Encoder(int layers, const TransformerLayerConfig& config, DropoutSites& sites) {
  for (int i = 0; i < layers; ++i) {
    TransformerLayerConfig layer = config;
    layer.layer = i;
    layers_.emplace_back(fmt::format("encoder.{}", i), layer, sites);
  }
  if (config.norm == NormPlacement::kPre) final_norm_ = std::make_unique<LayerNorm>(config.d_model);
}

Var Encoder::forward(Context& context, Var x, const Sequences& rows) const {
  if (context.tape.recording()) {
    for (const EncoderLayer& layer : layers_) x = layer.forward(context, x, rows);
  } else {
    // No gradient will ask for what happened inside of a layer: the next one uses the same memory, while it
    // is in the cache.
    const Var state = context.tape.make(x.rows(), x.cols());
    const Arena::Mark inside = context.tape.arena().mark();
    for (const EncoderLayer& layer : layers_) {
      const ConstMatrixView y = layer.forward(context, x, rows).value();
      std::copy_n(y.data, y.size(), state.value().data);
      context.tape.arena().rewind(inside);
      x = state;
    }
  }
  return final_norm_ ? normalise(context.tape, x, final_norm_->parameters()) : x;
}

void Encoder::initialise(Random& random) {
  for (EncoderLayer& layer : layers_) layer.initialise(random);
}

void Encoder::visit(const ParameterVisitor& visitor) {
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i].visit(fmt::format("encoder.{}", i), visitor);
  if (final_norm_) final_norm_->visit("encoder.final_norm", visitor);
}

void Encoder::visit_attentions(const AttentionVisitor& visitor) const {
  for (const EncoderLayer& layer : layers_) layer.visit_attentions(visitor);
}

MultiHeadAttention* Encoder::find_attention(std::string_view name) {
  for (EncoderLayer& layer : layers_) {
    if (layer.self_attention().name() == name) return &layer.self_attention();
  }
  return nullptr;
}

}  // namespace mh

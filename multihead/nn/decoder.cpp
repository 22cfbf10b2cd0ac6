#include "multihead/nn/decoder.h"

#include <fmt/format.h>

#include <algorithm>

namespace mh {
namespace {

MultiHeadAttentionConfig attention_config(const TransformerLayerConfig& config, Positions positions) {
  return {.d_model = config.d_model,
          .geometry = config.geometry,
          .weights_dropout = config.dropout.weights,
          .positions = positions,
          .sight = Sight::kBackward,
          .layer = config.layer};
}

}  // namespace

DecoderLayer::DecoderLayer(const std::string& name, const TransformerLayerConfig& config, DropoutSites& sites)
    : self_attention_(name + ".self_attention", attention_config(config, config.positions), sites),
      self_residual_(config, sites),
      cross_attention_(name + ".cross_attention", attention_config(config, Positions::kNone), sites),
      cross_residual_(config, sites),
      feed_forward_(config, sites),
      feed_forward_residual_(config, sites) {}

Var DecoderLayer::forward(Context& context, Var x, const Sequences& rows, Var memory,
                          const Sequences& memory_rows) const {
  const Var own = self_attention_.self(context, self_residual_.before(context, x), rows, Mask::causal());
  x = self_residual_.after(context, own, self_attention_.output(), x, rows);
  const KeysAndValues keys = cross_attention_.project_memory(context, memory, memory_rows.ragged->offsets());
  const Var q = cross_attention_.project_queries(context, cross_residual_.before(context, x));
  const Var crossed = cross_attention_.attend(context, q, rows, keys, Mask::none());
  x = cross_residual_.after(context, crossed, cross_attention_.output(), x, rows);
  const Var hidden = feed_forward_.hidden(context, feed_forward_residual_.before(context, x), rows);
  return feed_forward_residual_.after(context, hidden, feed_forward_.second(), x, rows);
}

void DecoderLayer::start(Context& context, Var memory, std::span<const int32_t> memory_offsets,
                         DecoderLayerCache& cache) const {
  const Arena::Mark mark = context.tape.arena().mark();
  const KeysAndValues both = cross_attention_.project_memory(context, memory, memory_offsets);
  const int64_t width = both.keys.cols() + both.values.cols();
  cache.memory = Tensor(memory.rows(), width);
  const MatrixView to = cache.memory.view();
  copy_or_add(both.keys.value(), to.columns_between(0, both.keys.cols()), Write::kOverwrite);
  copy_or_add(both.values.value(), to.columns_between(both.keys.cols(), width), Write::kOverwrite);
  context.tape.arena().rewind(mark);
}

Var DecoderLayer::step(Context& context, Var x, DecoderLayerCache& own, const DecoderCache& cache) const {
  Tape& tape = context.tape;
  const auto p = self_attention_.project(context, self_residual_.before(context, x),
                                         {.positions = cache.query_positions});
  const int64_t rows = x.rows(), d_k = p.k.cols(), width = d_k + p.v.cols();
  const MatrixView written(own.self.data(), cache.rows_written + rows, width);
  const MatrixView fresh = written.rows_between(cache.rows_written, written.rows);
  copy_or_add(p.k.value(), fresh.columns_between(0, d_k), Write::kOverwrite);
  copy_or_add(p.v.value(), fresh.columns_between(d_k, width), Write::kOverwrite);
  const Sequences alone{.ids = {}, .ragged = &cache.queries_alone, .sentences = {}};
  const Var looked_back =
      self_attention_.attend(context, p.q, alone,
                             {.keys = tape.constant(written.columns_between(0, d_k)),
                              .values = tape.constant(written.columns_between(d_k, width)),
                              .offsets = cache.path_keys.offsets(),
                              .rows = cache.paths},
                             Mask::none());
  x = self_residual_.after(context, looked_back, self_attention_.output(), x, alone);

  const Sequences together{.ids = {}, .ragged = &cache.queries_by_source, .sentences = {}};
  const Var q = cross_attention_.project_queries(context, cross_residual_.before(context, x));
  const MatrixView memory = own.memory.view();
  const int64_t memory_k = cross_attention_.key_width();
  const Var crossed =
      cross_attention_.attend(context, q, together,
                              {.keys = tape.constant(memory.columns_between(0, memory_k)),
                               .values = tape.constant(memory.columns_between(memory_k, memory.cols)),
                               .offsets = cache.memory_offsets,
                               .rows = {}},
                              Mask::none());
  x = cross_residual_.after(context, crossed, cross_attention_.output(), x, together);
  const Var hidden = feed_forward_.hidden(context, feed_forward_residual_.before(context, x), together);
  return feed_forward_residual_.after(context, hidden, feed_forward_.second(), x, together);
}

void DecoderLayer::initialise(Random& random) {
  self_attention_.initialise(random);
  cross_attention_.initialise(random);
  feed_forward_.initialise(random);
}

void DecoderLayer::visit(const std::string& name, const ParameterVisitor& visitor) {
  self_attention_.visit(name + ".self_attention", visitor);
  self_residual_.visit(name + ".self_attention_norm", visitor);
  cross_attention_.visit(name + ".cross_attention", visitor);
  cross_residual_.visit(name + ".cross_attention_norm", visitor);
  feed_forward_.visit(name + ".feed_forward", visitor);
  feed_forward_residual_.visit(name + ".feed_forward_norm", visitor);
}

void DecoderLayer::visit_attentions(const AttentionVisitor& visitor) const {
  visitor(self_attention_);
  visitor(cross_attention_);
}

Decoder::Decoder(int layers, const TransformerLayerConfig& config, DropoutSites& sites) {
  for (int i = 0; i < layers; ++i) {
    TransformerLayerConfig layer = config;
    layer.layer = i;
    layers_.emplace_back(fmt::format("decoder.{}", i), layer, sites);
  }
  if (config.norm == NormPlacement::kPre) final_norm_ = std::make_unique<LayerNorm>(config.d_model);
}

Var Decoder::forward(Context& context, Var x, const Sequences& rows, Var memory,
                     const Sequences& memory_rows) const {
  for (const DecoderLayer& layer : layers_) x = layer.forward(context, x, rows, memory, memory_rows);
  return final_norm_ ? normalise(context.tape, x, final_norm_->parameters()) : x;
}

void Decoder::start(Context& context, Var memory, std::span<const int32_t> memory_offsets,
                    DecoderCache& cache) const {
  cache.layers.resize(layers_.size());
  cache.memory_offsets = memory_offsets;
  cache.rows_written = 0;
  cache.steps = 0;
  cache.paths.clear();
  for (size_t i = 0; i < layers_.size(); ++i)
    layers_[i].start(context, memory, memory_offsets, cache.layers[i]);
}

Var Decoder::step(Context& context, Var x, std::span<const int32_t> parents, std::span<const int32_t> sources,
                  DecoderCache& cache) const {
  const auto rows = static_cast<int32_t>(x.rows());
  // Each hypothesis continues its parent's path by the row that this step writes for it.
  const int32_t old_steps = cache.steps++;
  cache.next_paths.resize(static_cast<size_t>(rows) * static_cast<size_t>(cache.steps));
  for (int32_t i = 0; i < rows; ++i) {
    int32_t* to = cache.next_paths.data() + static_cast<int64_t>(i) * cache.steps;
    if (old_steps > 0) {
      const int32_t parent = parents[static_cast<size_t>(i)];
      MH_ASSERT(parent >= 0 && (int64_t{parent} + 1) * old_steps <= static_cast<int64_t>(cache.paths.size()));
      std::copy_n(cache.paths.data() + int64_t{parent} * old_steps, old_steps, to);
    }
    to[old_steps] = cache.rows_written + i;
  }
  cache.paths.swap(cache.next_paths);

  cache.query_positions.assign(static_cast<size_t>(rows), old_steps);
  cache.queries_alone.clear();
  cache.path_keys.clear();
  for (int32_t i = 0; i < rows; ++i) {
    cache.queries_alone.add(1);
    cache.path_keys.add(cache.steps);
  }
  cache.queries_by_source.clear();
  const auto source_count = static_cast<int32_t>(cache.memory_offsets.size()) - 1;
  size_t at = 0;
  for (int32_t s = 0; s < source_count; ++s) {
    const size_t first = at;
    while (at < sources.size() && sources[at] == s) ++at;
    cache.queries_by_source.add(static_cast<int32_t>(at - first));
  }
  MH_ASSERT(at == sources.size());  // sources rise and exist

  for (DecoderLayerCache& layer : cache.layers) {
    const int64_t width = layer.memory.cols();
    const int64_t needed = (int64_t{cache.rows_written} + rows) * width;
    if (needed > layer.self.size()) {
      AlignedBuffer<float> larger(std::max(needed, 2 * layer.self.size()));
      std::copy_n(layer.self.data(), int64_t{cache.rows_written} * width, larger.data());
      layer.self = std::move(larger);
    }
  }
  for (size_t i = 0; i < layers_.size(); ++i) x = layers_[i].step(context, x, cache.layers[i], cache);
  cache.rows_written += rows;
  return final_norm_ ? normalise(context.tape, x, final_norm_->parameters()) : x;
}

void Decoder::initialise(Random& random) {
  for (DecoderLayer& layer : layers_) layer.initialise(random);
}

void Decoder::visit(const ParameterVisitor& visitor) {
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i].visit(fmt::format("decoder.{}", i), visitor);
  if (final_norm_) final_norm_->visit("decoder.final_norm", visitor);
}

void Decoder::visit_attentions(const AttentionVisitor& visitor) const {
  for (const DecoderLayer& layer : layers_) layer.visit_attentions(visitor);
}

MultiHeadAttention* Decoder::find_attention(std::string_view name) {
  for (DecoderLayer& layer : layers_) {
    for (MultiHeadAttention* attention : {&layer.self_attention(), &layer.cross_attention()}) {
      if (attention->name() == name) return attention;
    }
  }
  return nullptr;
}

}  // namespace mh

#include "multihead/nn/stack_layer.h"

#include "multihead/nn/attention_positions.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/stack_cache.h"

namespace mh {
namespace {

MultiHeadAttentionConfig self_config(const StackConfig& config, int number) {
  const LayerConfig& layer = config.layers[static_cast<size_t>(number)];
  return {.d_model = config.d_model,
          .geometry = layer.self_attention,
          .norm_epsilon = config.norm.epsilon,
          .weights_dropout = config.dropout.weights,
          .positions = config.positions_of(static_cast<size_t>(number)),
          .rotary = layer.rotary.value_or(config.rotary),
          .buckets = config.buckets,
          .disentangled = config.disentangled,
          .mask = config.mask_of(static_cast<size_t>(number)),
          .layer = number};
}

MultiHeadAttentionConfig cross_config(const StackConfig& config, int number) {
  return {.d_model = config.d_model,
          .geometry = config.layers[static_cast<size_t>(number)].cross_attention,
          .norm_epsilon = config.norm.epsilon,
          .weights_dropout = config.dropout.weights,
          .layer = number};
}

std::string layer_name(const StackConfig& config, int number, const char* part) {
  return config.name + "." + std::to_string(number) + part;
}

}  // namespace

StackLayer::StackLayer(const StackConfig& config, int number, DropoutStreams& streams)
    : name_(layer_name(config, number, "")),
      order_(config.order),
      self_attention_(layer_name(config, number, ".self_attention"), self_config(config, number), streams),
      self_residual_(config, streams, config.layers[static_cast<size_t>(number)].norm_before),
      cross_(config.cross_attention
                 ? std::unique_ptr<Cross>(new Cross{{layer_name(config, number, ".cross_attention"),
                                                     cross_config(config, number), streams},
                                                    {config, streams}})
                 : nullptr),
      feed_forward_(config.layers[static_cast<size_t>(number)].feed_forward, config.d_model,
                    config.dropout.activation, streams),
      feed_forward_residual_(config, streams, config.order != SublayerOrder::kParallelOneNorm) {}

Var StackLayer::feed_forward(Context& context, Var x, const LayerInput& input, const Sequences& rows,
                             const RowPlaces& places) const {
  const Var read = order_ == SublayerOrder::kOneAfterAnother ? x
                   : order_ == SublayerOrder::kParallel      ? input.x
                                                             : input.normed;
  const Residual::Scales scales =
      scales_of(SitePart::kFeedForwardNormScale, SitePart::kFeedForwardOutputNormScale, places);
  const Var in =
      at(context, SitePart::kFeedForwardInput, feed_forward_residual_.before(context, read, scales), places);
  Var h = feed_forward_.hidden(context, in, rows);
  h = at(context, SitePart::kHidden, h, places);
  const Affine* last = feed_forward_.second();
  if (context.wants({name_, SitePart::kFeedForward})) {  // then it is no longer one op with what follows
    h = at(context, SitePart::kFeedForward, affine(context.tape, h, *last), places);
    last = nullptr;
  }
  return at(context, SitePart::kOutput, feed_forward_residual_.after(context, h, last, x, rows, scales),
            places);
}

Var StackLayer::attended(Context& context, const MultiHeadAttention& attention, const Residual& residual,
                         Var heads, Var x, const Sequences& rows, const RowPlaces& places) const {
  const Residual::Scales scales = &attention == &self_attention_ ? self_scales(places) : cross_scales(places);
  if (const Var asked = attention.output_for_sites(context, heads, places))
    return residual.after(context, asked, nullptr, x, rows, scales);
  return residual.after(context, heads, attention.output(), x, rows, scales);
}

Var StackLayer::forward(Context& context, Var x, const Sequences& rows, const Memory* memory) const {
  const RowPlaces places{.offsets = rows.ragged->offsets()};
  x = at(context, SitePart::kInput, x, places);
  const LayerInput input{.x = x, .normed = self_residual_.before(context, x, self_scales(places))};
  const Var own =
      self_attention_.self_heads(context, input.normed, rows, self_attention_.config().mask.mask());
  x = attended(context, self_attention_, self_residual_, own, x, rows, places);
  x = at(context, SitePart::kAfterSelfAttention, x, places);
  if (cross_) {
    const MultiHeadAttention& attention = cross_->attention;
    const KeysAndValues keys = attention.project_memory(context, context.tape.read_from_stream(memory->rows),
                                                        memory->sequences->ragged->offsets());
    const Var q =
        attention.project_queries(context, cross_->residual.before(context, x, cross_scales(places)), places);
    const Var crossed = attention.attend(context, q, rows, keys, Mask::none(), places);
    x = attended(context, attention, cross_->residual, crossed, x, rows, places);
    x = at(context, SitePart::kAfterCrossAttention, x, places);
  }
  return feed_forward(context, x, input, rows, places);
}

void StackLayer::start(Context& context, const Memory* memory, CacheType type, StackCache::Layer& own) const {
  own.self.start(type, self_attention_.key_width(), self_attention_.value_width());
  if (!cross_) return;
  const Arena::Mark mark = context.tape.arena().mark();
  const KeysAndValues both =
      cross_->attention.project_memory(context, memory->rows, memory->sequences->ragged->offsets());
  own.memory.start(type, both.keys.cols(), both.values.cols());
  own.memory.make_room(memory->rows.rows(), 0);
  own.memory.write(0, both.keys, both.values);
  context.tape.arena().rewind(mark);
}

Var StackLayer::extend(Context& context, Var x, StackCache::Layer& own, const StackCache& cache) const {
  Tape& tape = context.tape;
  const Sequences rows{.ids = {}, .ragged = &cache.new_rows_, .sentences = {}};
  const RowPlaces places = cache.new_places();
  x = at(context, SitePart::kInput, x, places);
  const LayerInput input{.x = x, .normed = self_residual_.before(context, x, self_scales(places))};
  const auto p = self_attention_.project(context, input.normed, places);
  own.self.write(cache.rows_written_, p.k, p.v);
  // A query alone in its sequence stands behind all keys: it meets them all, or a window's last.
  const bool alone = cache.new_rows_.longest() <= 1;
  const StackMask& sees = self_attention_.config().mask;
  const Mask mask = alone && sees.kind == StackMask::Kind::kCausal ? Mask::none() : sees.mask();
  const bool in_place = cache.in_place_ && !alone;  // then the kernel reads keys where they lie
  KeysAndValues read = own.self.read(tape, cache.rows_written_ + x.rows());
  read.offsets = cache.lengths_.offsets();
  if (!in_place) read.rows = cache.paths_;
  const Var looked_back = self_attention_.attend(context, p.q, rows, read, mask, places);
  x = attended(context, self_attention_, self_residual_, looked_back, x, rows, places);
  x = at(context, SitePart::kAfterSelfAttention, x, places);
  if (!cross_) return feed_forward(context, x, input, rows, places);

  const MultiHeadAttention& attention = cross_->attention;
  const Sequences together{.ids = {}, .ragged = &cache.by_source_, .sentences = {}};
  const Var q =
      attention.project_queries(context, cross_->residual.before(context, x, cross_scales(places)), places);
  KeysAndValues memory = own.memory.read(tape, cache.memory_offsets_.back());
  memory.offsets = cache.memory_offsets_;
  const Var crossed = attention.attend(context, q, together, memory, Mask::none(), places);
  x = attended(context, attention, cross_->residual, crossed, x, together, places);
  x = at(context, SitePart::kAfterCrossAttention, x, places);
  return feed_forward(context, x, input, together, places);
}

void StackLayer::visit_sites(const SiteVisitor& visitor) const {
  const int64_t d_model = self_attention_.config().d_model;
  const auto visit = [&](SitePart part, int64_t columns) { visitor(SiteShape::of({name_, part}, columns)); };
  visit(SitePart::kInput, d_model);
  self_residual_.visit_sites({name_, SitePart::kSelfNormScale}, {name_, SitePart::kSelfOutputNormScale},
                             visitor);
  self_attention_.visit_sites(visitor);
  visit(SitePart::kAfterSelfAttention, d_model);
  if (cross_) {
    cross_->residual.visit_sites({name_, SitePart::kCrossNormScale}, {name_, SitePart::kCrossOutputNormScale},
                                 visitor);
    cross_->attention.visit_sites(visitor);
    visit(SitePart::kAfterCrossAttention, d_model);
  }
  feed_forward_residual_.visit_sites({name_, SitePart::kFeedForwardNormScale},
                                     {name_, SitePart::kFeedForwardOutputNormScale}, visitor);
  visit(SitePart::kFeedForwardInput, d_model);
  visit(SitePart::kHidden, feed_forward_.second()->inputs());
  visit(SitePart::kFeedForward, d_model);
  visit(SitePart::kOutput, d_model);
}

void StackLayer::initialise(Random& random) {
  self_attention_.initialise(random);
  if (cross_) cross_->attention.initialise(random);
  feed_forward_.initialise(random);
}

void StackLayer::visit(const std::string& name, const ParameterVisitor& visitor) {
  self_attention_.visit(name + ".self_attention", visitor);
  self_residual_.visit(name + ".self_attention", visitor);
  if (cross_) {
    cross_->attention.visit(name + ".cross_attention", visitor);
    cross_->residual.visit(name + ".cross_attention", visitor);
  }
  feed_forward_.visit(name + ".feed_forward", visitor);
  feed_forward_residual_.visit(name + ".feed_forward", visitor);
}

}  // namespace mh

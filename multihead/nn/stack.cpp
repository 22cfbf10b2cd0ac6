#include "multihead/nn/stack.h"
#include "multihead/nn/stack_cache.h"

#include <fmt/format.h>

#include <algorithm>

namespace mh {

Stack::Stack(const StackConfig& config, DropoutStreams& streams) : config_(config) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (const StackMask& mask = config.mask_of(i); mask.has_window() && mask.window < 1)
      throw UsageError(fmt::format("{}.{}: window is {}; expected at least 1", config.name, i, mask.window));
    layers_.emplace_back(config, static_cast<int>(i), streams);
  }
  if (config.one_bias && config.positions == Positions::kT5) {
    // The first layer's own table serves all.
    const MultiHeadAttention& first = layers_.front().self_attention();
    for (StackLayer& layer : layers_) {
      MultiHeadAttention& attention = layer.self_attention();
      if (attention.heads() != first.heads()) {
        throw UsageError(fmt::format("{} has {} heads, {} has {}; one bias for all layers needs equally many",
                                     attention.name(), attention.heads(), first.name(), first.heads()));
      }
      attention.share_positions(first);
    }
  }
  const MultiHeadAttention* disentangled = nullptr;  // the first layer's, which has what the others share
  for (StackLayer& layer : layers_) {
    MultiHeadAttention& attention = layer.self_attention();
    if (attention.config().positions != Positions::kDisentangled) continue;
    if (disentangled == nullptr) disentangled = &attention;
    attention.share_positions(*disentangled);
  }
  if (config.norm.is_at_end()) end_ = std::make_unique<NormLayer>(config.norm, config.d_model);
}

template <class Layer>
Var Stack::one_after_another(Context& context, Var x, size_t first, Layer run_layer) const {
  Tape& tape = context.tape;
  const auto all_stay = [&] {
    return tape.recording();
  };  // perhaps since a layer in which a value is watched
  const Var state = all_stay() ? Var() : tape.constant(tape.arena().matrix<float>(x.rows(), x.cols()));
  const Arena::Mark inside = tape.arena().mark();
  for (size_t i = first; i < layers_.size(); ++i) {
    const Var y = run_layer(i, x);
    if (all_stay()) {
      x = y;
      continue;
    }
    // No gradient will ask for what happened inside of this layer: the next one uses the same memory, while
    // it is in the cache.
    std::copy_n(y.value().data, y.value().size(), state.value().data);
    tape.arena().rewind(inside);
    x = state;
  }
  return x;
}

Var Stack::forward(Context& context, Var x, const Sequences& rows, const Memory* memory) const {
  MH_ASSERT((memory != nullptr) == config_.cross_attention);
  const RowPlaces places{.offsets = rows.ragged->offsets()};
  size_t first = 0;
  if (const LayerStart* start = context.start_of(config_.name)) {
    MH_ASSERT(start->layer >= 0 && static_cast<size_t>(start->layer) <= layers_.size());
    MH_ASSERT(start->input.rows == x.rows() && start->input.cols == x.cols());
    first = static_cast<size_t>(start->layer);
    for (int64_t i = 0; i < x.rows(); ++i) std::copy_n(start->input.row(i), x.cols(), x.value().row(i));
  } else {
    x = begun(context, x, places);
  }
  x = one_after_another(context, x, first,
                        [&](size_t i, Var in) { return layers_[i].forward(context, in, rows, memory); });
  return finished(context, x, places);
}

void Stack::start(Context& context, const Memory* memory, StackCache& cache) const {
  MH_ASSERT((memory != nullptr) == config_.cross_attention);
  cache.start(layers_.size(),
              memory != nullptr ? memory->sequences->ragged->offsets() : std::span<const int32_t>());
  for (size_t i = 0; i < layers_.size(); ++i)
    layers_[i].start(context, memory, cache.type_, cache.layers_[i]);
}

Var Stack::extend(Context& context, Var x, const NewRows& rows, StackCache& cache) const {
  MH_ASSERT(config_.mask_of(0).direction() == AttentionDirection::kCausal);
  if (context.tape.mode() != Tape::Mode::kEvaluate)
    throw UsageError("cached decoding has no gradients; take a tape that does not record");
  MH_ASSERT(rows.rows->rows() == x.rows());
  cache.append(rows);
  const RowPlaces places = cache.new_places();
  x = one_after_another(context, begun(context, x, places), 0, [&](size_t i, Var in) {
    return layers_[i].extend(context, in, cache.layers_[i], cache);
  });
  cache.rows_written_ += static_cast<int32_t>(x.rows());
  return finished(context, x, places);
}

void Stack::initialise(Random& random) {
  for (StackLayer& layer : layers_) layer.initialise(random);
}

void Stack::visit(const ParameterVisitor& visitor) {
  for (size_t i = 0; i < layers_.size(); ++i)
    layers_[i].visit(fmt::format("{}.{}", config_.name, i), visitor);
  if (end_) end_->visit(config_.name + ".final_norm", visitor);
}

void Stack::visit_attentions(const AttentionVisitor& visitor) const {
  const AttentionKind self =
      config_.name == "encoder" ? AttentionKind::kEncoderSelf : AttentionKind::kDecoderSelf;
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    const StackLayer& layer = layers_[static_cast<size_t>(i)];
    visitor(layer.self_attention(), {.kind = self, .layer = i});
    if (layer.cross_attention() != nullptr)
      visitor(*layer.cross_attention(), {.kind = AttentionKind::kCross, .layer = i});
  }
}

void Stack::visit_sites(const SiteVisitor& visitor) const {
  visitor(SiteShape::of({config_.name, SitePart::kEmbeddings}, config_.d_model));
  for (const StackLayer& layer : layers_) layer.visit_sites(visitor);
  if (end_) visitor(SiteShape::of({config_.name, SitePart::kFinalNormScale}, 1));
  visitor(SiteShape::of({config_.name, SitePart::kStates}, config_.d_model));
}

MultiHeadAttention* Stack::find_attention(std::string_view name) {
  for (StackLayer& layer : layers_) {
    if (layer.self_attention().name() == name) return &layer.self_attention();
    if (layer.cross_attention() != nullptr && layer.cross_attention()->name() == name)
      return layer.cross_attention();
  }
  return nullptr;
}

}  // namespace mh

// The shape of an encoder-decoder whose heads may have changed: one description for as many attentions as possible,
// and the others' own.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "multihead/models/encoder_decoder_config.h"
#include "multihead/models/shortest_heads.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/stack_config.h"

namespace mh {
namespace {

struct PlacedHeads {
  AttentionPlace place;
  HeadGeometry heads;
};
using HeadsByName = std::map<std::string, PlacedHeads>;

HeadsByName placed_heads(const EncoderDecoderConfig& config) {
  HeadsByName all;
  const auto add = [&](AttentionKind kind, const StackConfig& stack, HeadGeometry LayerConfig::*heads) {
    for (int layer = 0; layer < std::ssize(stack.layers); ++layer) {
      const AttentionPlace place{kind, layer};
      all[place.name()] = {place, stack.layers[static_cast<size_t>(layer)].*heads};
    }
  };
  add(AttentionKind::kEncoderSelf, config.encoder, &LayerConfig::self_attention);
  add(AttentionKind::kDecoderSelf, config.decoder, &LayerConfig::self_attention);
  add(AttentionKind::kCross, config.decoder, &LayerConfig::cross_attention);
  return all;
}

/// Whether an attention that shares this description has these heads.
bool describes(HeadGeometry shared, const HeadGeometry& heads, int d_model) {
  shared.heads = heads.heads;
  return problems_of(shared, d_model).empty() && completed(shared, d_model, "") == heads;
}

/// Describes completed heads in the fields of a shape.
void describe_heads(const HeadsByName& all, TranslatorShape& after) {
  const int d_model = after.d_model;
  const HeadGeometry &encoder = all.at(AttentionPlace{AttentionKind::kEncoderSelf}.name()).heads,
                     &decoder = all.at(AttentionPlace{AttentionKind::kDecoderSelf}.name()).heads;
  int64_t most = -1;
  // The description must be possible with the heads of either side, which with keys of as many of the other side is not: then
  // both sides get the heads of one.
  const auto consider = [&](const HeadGeometry& described_by, int encoder_heads, int decoder_heads) {
    const HeadGeometry candidate = shortest(described_by, d_model);
    for (const int heads : {encoder_heads, decoder_heads}) {
      HeadGeometry one = candidate;
      one.heads = heads;
      if (!problems_of(one, d_model).empty()) return;
    }
    const int64_t described = std::count_if(all.begin(), all.end(), [&](const auto& named) {
      const PlacedHeads& attention = named.second;
      const bool of_encoder = attention.place.kind == AttentionKind::kEncoderSelf;
      return attention.heads.heads == (of_encoder ? encoder_heads : decoder_heads) &&
             describes(candidate, attention.heads, d_model);
    });
    if (described <= most) return;
    most = described;
    after.geometry = candidate;
    after.geometry.heads = HeadGeometry().heads;  // the sides have their own
    after.encoder_heads = encoder_heads;
    after.decoder_heads = decoder_heads;
  };
  consider(encoder, encoder.heads, decoder.heads);
  consider(decoder, encoder.heads, decoder.heads);
  if (most < 0) {
    consider(encoder, encoder.heads, encoder.heads);
    consider(decoder, decoder.heads, decoder.heads);
  }
  for (const auto& [name, attention] : all) {
    const HeadGeometry shared = after.heads_of(attention.place);
    if (problems_of(shared, d_model).empty() && completed(shared, d_model, name) == attention.heads) continue;
    after.own_heads.push_back({.attention = name, .geometry = shortest(attention.heads, d_model)});
  }
}

}  // namespace

TranslatorShape shape_of(const EncoderDecoderConfig& config) {
  const LayerConfig &encoder = config.encoder.layers.front(), &decoder = config.decoder.layers.front();
  const auto layers = [](const StackConfig& stack) { return static_cast<int32_t>(stack.layers.size()); };
  const auto source = static_cast<int32_t>(config.embedding.vocabulary);
  TranslatorShape shape{
      .vocabulary_size = source,
      .target_vocabulary_size = config.target_vocabulary() == source ? 0 : config.target_vocabulary(),
      .d_model = config.encoder.d_model,
      .encoder_layers = layers(config.encoder),
      .decoder_layers = layers(config.decoder),
      .encoder_heads = encoder.self_attention.heads,
      .decoder_heads = decoder.self_attention.heads,
      .geometry = encoder.self_attention,
      .positions = config.encoder.positions,
      .encoder_ff = encoder.feed_forward.d_ff,
      .decoder_ff = decoder.feed_forward.d_ff,
      .activation = encoder.feed_forward.activation,
      .gated = encoder.feed_forward.gated,
      .feed_forward_bias = encoder.feed_forward.biases == Biases::kAll,
      .norm = config.encoder.norm.placement,
      .norm_kind = config.encoder.norm.kind,
      .norm_epsilon = config.encoder.norm.epsilon,
      .dropout = config.encoder.dropout,
      .max_positions = config.max_positions,
      .position_offset = config.position_offset,
      .sinusoids = config.sinusoids,
      .one_bias = config.encoder.one_bias,
      .buckets = config.encoder.buckets,
      .share_embeddings = config.share_embeddings,
      .own_output = config.share_embeddings && !config.tied,
      .output_bias = config.output_bias,
      .scale_states = config.scale_states,
      .scale_embedding = config.embedding.scaled,
      .norm_embeddings = config.embedding.norm.has_value(),
      .pad_id = config.pad_id,
      .eos_id = config.eos_id,
      .decoder_start_id = config.decoder_start_id};
  shape.geometry.heads = HeadGeometry().heads;  // the sides have their own
  HeadsByName all = placed_heads(config);
  if (std::all_of(all.begin(), all.end(), [&](const auto& named) {
        return shape.heads_of(named.second.place) == named.second.heads;
      }))
    return shape;
  for (auto& [name, attention] : all) attention.heads = completed(attention.heads, shape.d_model, name);
  describe_heads(all, shape);
  return shape;
}

}  // namespace mh

#include "multihead/models/translator_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/models/config_checks.h"
#include "multihead/models/encoder_decoder_config.h"

namespace mh {
namespace {

// A geometry that says its sizes needs no divisor.
void check_heads(std::vector<std::string>& found, std::string_view name, int32_t heads,
                 const TranslatorShape& shape, const ConfigNames& names) {
  if (heads < 1 || (shape.geometry.d_key == 0 && (heads > shape.d_model || shape.d_model % heads != 0))) {
    found.push_back(no_divisor(name, heads, names.d_model, shape.d_model));
    return;
  }
  HeadGeometry geometry = shape.geometry;
  geometry.heads = heads;
  check_geometry(found, "", geometry, shape.positions, shape.d_model);
}

/// Every attention of own_heads must be there, once, and possible.
void check_own_heads(std::vector<std::string>& found, const TranslatorShape& shape) {
  std::set<std::string> there, seen;
  const auto add = [&](AttentionKind kind, int32_t layers) {
    for (int32_t i = 0; i < layers; ++i) there.insert(AttentionPlace{kind, i}.name());
  };
  add(AttentionKind::kEncoderSelf, shape.encoder_layers);
  add(AttentionKind::kDecoderSelf, shape.decoder_layers);
  add(AttentionKind::kCross, shape.decoder_layers);
  for (const OwnHeads& own : shape.own_heads) {
    if (!there.contains(own.attention) || !seen.insert(own.attention).second) {
      found.push_back(fmt::format("own_heads names attention '{}', which {}", own.attention,
                                  there.contains(own.attention) ? "it has named before" : "there is not"));
      continue;
    }
    check_geometry(found, own.attention + ": ", own.geometry, shape.positions, shape.d_model);
  }
}

StackConfig stack_of(const TranslatorShape& shape, StackConfig stack, AttentionKind self, int32_t layers,
                     int32_t d_ff) {
  stack.d_model = shape.d_model;
  stack.positions = shape.positions;
  stack.one_bias = shape.one_bias;
  stack.buckets = shape.buckets;
  stack.norm = {.kind = shape.norm_kind, .placement = shape.norm, .epsilon = shape.norm_epsilon};
  stack.dropout = shape.dropout;
  for (int32_t i = 0; i < layers; ++i) {
    stack.layers.push_back(
        {.self_attention = shape.heads_of({self, i}),
         .cross_attention = shape.heads_of({AttentionKind::kCross, i}),
         .feed_forward = {.d_ff = d_ff,
                          .activation = shape.activation,
                          .gated = shape.gated,
                          .biases = shape.feed_forward_bias ? Biases::kAll : Biases::kNone}});
  }
  return stack;
}

/// REQUIRES: the numbers of layers are in their range.
EncoderDecoderConfig config_of(const TranslatorShape& shape) {
  const auto embedding = [&](int32_t vocabulary) {
    EmbeddingConfig config{
        .vocabulary = vocabulary, .d_model = shape.d_model, .scaled = shape.scale_embedding};
    if (shape.norm_embeddings) config.norm = NormConfig();
    if (shape.sinusoids == SinusoidForm::kFairseq) config.uncounted = shape.pad_id;
    return config;
  };
  const EncoderDecoderConfig usual;
  return {.embedding = embedding(shape.vocabulary_size),
          .target_embedding = embedding(shape.target_vocabulary()),
          .share_embeddings = shape.share_embeddings,
          .tied = shape.share_embeddings && !shape.own_output,
          .output_bias = shape.output_bias,
          .scale_states = shape.scale_states,
          .max_positions = shape.max_positions,
          .position_offset = shape.position_offset,
          .sinusoids = shape.sinusoids,
          .encoder = stack_of(shape, usual.encoder, AttentionKind::kEncoderSelf, shape.encoder_layers,
                              shape.encoder_ff),
          .decoder = stack_of(shape, usual.decoder, AttentionKind::kDecoderSelf, shape.decoder_layers,
                              shape.decoder_ff),
          .pad_id = shape.pad_id,
          .eos_id = shape.eos_id,
          .decoder_start_id = shape.decoder_start_id};
}

}  // namespace

HeadGeometry TranslatorShape::heads_of(const AttentionPlace& attention) const {
  const auto own = std::find_if(own_heads.begin(), own_heads.end(),
                                [name = attention.name()](const OwnHeads& o) { return o.attention == name; });
  if (own != own_heads.end()) return own->geometry;
  HeadGeometry shared = geometry;
  shared.heads = attention.kind == AttentionKind::kEncoderSelf ? encoder_heads : decoder_heads;
  return shared;
}

EncoderDecoderConfig TranslatorShape::config() const {
  if (const auto found = problems_of(*this); !found.empty())
    throw UsageError(fmt::format("this Transformer cannot be built: {}", fmt::join(found, "; ")));
  return config_of(*this);
}

std::vector<std::string> problems_of(const TranslatorShape& shape) {
  return problems_of(shape, {.start_id = "decoder_start_id"});
}

std::vector<std::string> problems_of(const TranslatorShape& shape, const ConfigNames& names) {
  constexpr int64_t kLargest = 1 << 24, kLayers = 1024;
  std::vector<std::string> found;
  check_range(found, names.vocabulary, shape.vocabulary_size, 2, kLargest);
  check_range(found, names.target_vocabulary, shape.target_vocabulary_size, 0, kLargest);
  check_range(found, names.d_model, shape.d_model, 1, 1 << 16);
  check_range(found, "encoder_layers", shape.encoder_layers, 1, kLayers);
  check_range(found, "decoder_layers", shape.decoder_layers, 1, kLayers);
  check_range(found, names.encoder_ff, shape.encoder_ff, 1, 1 << 20);
  check_range(found, names.decoder_ff, shape.decoder_ff, 1, 1 << 20);
  check_range(found, names.max_positions, shape.max_positions, 1, 1 << 20);
  if (found.empty()) {
    check_heads(found, names.encoder_heads, shape.encoder_heads, shape, names);
    if (found.empty()) check_heads(found, names.decoder_heads, shape.decoder_heads, shape, names);
    if (found.empty()) check_own_heads(found, shape);
  }
  if (shape.activation == Activation::kNone) found.push_back(no_activation());
  if (found.empty()) return problems_of(config_of(shape), names);
  // Layers cannot be made, but what else is wrong can be told.
  TranslatorShape without_layers = shape;
  without_layers.encoder_layers = without_layers.decoder_layers = 0;
  check_dropout_and_words(found, config_of(without_layers), names);
  return found;
}

}  // namespace mh

#include "multihead/models/encoder_decoder_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "multihead/base/error.h"
#include "multihead/models/config_checks.h"

namespace mh {
namespace {

// A geometry that says its sizes needs no divisor.
void check_heads(std::vector<std::string>& found, std::string_view name, int32_t heads,
                 const EncoderDecoderConfig& config, const ConfigNames& names) {
  if (heads < 1 || (config.geometry.d_key == 0 && (heads > config.d_model || config.d_model % heads != 0))) {
    found.push_back(no_divisor(name, heads, names.d_model, config.d_model));
    return;
  }
  HeadGeometry geometry = config.geometry;
  geometry.heads = heads;
  std::vector<std::string> wrong = problems_of(geometry, config.d_model);
  if (wrong.empty()) wrong = problems_of(config.positions, geometry, config.d_model);
  for (std::string& problem : wrong) found.push_back(std::move(problem));
}

/// Every attention of own_heads must be there, once, and possible.
void check_own_heads(std::vector<std::string>& found, const EncoderDecoderConfig& config) {
  std::set<std::string> there, seen;
  for (const StackConfig& stack : {encoder_stack(config), decoder_stack(config)}) {
    for (size_t i = 0; i < stack.layers.size(); ++i) {
      there.insert(fmt::format("{}.{}.self_attention", stack.name, i));
      if (stack.cross_attention) there.insert(fmt::format("{}.{}.cross_attention", stack.name, i));
    }
  }
  for (const OwnHeads& own : config.own_heads) {
    if (!there.contains(own.attention) || !seen.insert(own.attention).second) {
      found.push_back(fmt::format("own_heads names attention '{}', which {}", own.attention,
                                  there.contains(own.attention) ? "it has named before" : "there is not"));
      continue;
    }
    std::vector<std::string> wrong = problems_of(own.geometry, config.d_model);
    if (wrong.empty()) wrong = problems_of(config.positions, own.geometry, config.d_model);
    for (const std::string& problem : wrong) found.push_back(fmt::format("{}: {}", own.attention, problem));
  }
}

StackConfig stack_of(const EncoderDecoderConfig& config, const char* name, int layers, int d_ff) {
  StackConfig stack{.name = name,
                    .d_model = config.d_model,
                    .positions = config.positions,
                    .norm = {.placement = config.norm},
                    .dropout = config.dropout};
  for (int i = 0; i < layers; ++i) {
    stack.layers.push_back({.self_attention = config.heads_of(fmt::format("{}.{}.self_attention", name, i)),
                            .cross_attention = config.heads_of(fmt::format("{}.{}.cross_attention", name, i)),
                            .feed_forward = {.d_ff = d_ff, .activation = config.activation}});
  }
  return stack;
}

}  // namespace

HeadGeometry EncoderDecoderConfig::heads_of(std::string_view attention) const {
  const auto own = std::find_if(own_heads.begin(), own_heads.end(),
                                [&](const OwnHeads& o) { return o.attention == attention; });
  if (own != own_heads.end()) return own->geometry;
  HeadGeometry shared = geometry;
  shared.heads = attention.starts_with("encoder.") ? encoder_heads : decoder_heads;
  return shared;
}

double least_parameters(const EncoderDecoderConfig& c) {
  const double d = c.d_model;
  double attentions = 0;
  if (c.own_heads.empty()) attentions = 4 * d * d * c.encoder_layers + 8 * d * d * c.decoder_layers;
  return d * c.vocabulary_size + attentions + c.encoder_layers * 2 * d * c.encoder_ff +
         c.decoder_layers * 2 * d * c.decoder_ff;
}

StackConfig encoder_stack(const EncoderDecoderConfig& config) {
  return stack_of(config, "encoder", config.encoder_layers, config.encoder_ff);
}

StackConfig decoder_stack(const EncoderDecoderConfig& config) {
  StackConfig stack = stack_of(config, "decoder", config.decoder_layers, config.decoder_ff);
  stack.mask = StackMask::causal();
  stack.cross_attention = true;
  return stack;
}

std::vector<std::string> problems_of(const EncoderDecoderConfig& config) {
  return problems_of(config, {.start_id = "decoder_start_id"});
}

std::vector<std::string> problems_of(const EncoderDecoderConfig& config, const ConfigNames& names) {
  constexpr int64_t kLargest = 1 << 24, kLayers = 1024;
  std::vector<std::string> found;
  check_range(found, names.vocabulary, config.vocabulary_size, 2, kLargest);
  check_range(found, names.target_vocabulary, config.target_vocabulary_size, 0, kLargest);
  check_range(found, names.d_model, config.d_model, 1, 1 << 16);
  check_range(found, "encoder_layers", config.encoder_layers, 1, kLayers);
  check_range(found, "decoder_layers", config.decoder_layers, 1, kLayers);
  check_range(found, names.encoder_ff, config.encoder_ff, 1, 1 << 20);
  check_range(found, names.decoder_ff, config.decoder_ff, 1, 1 << 20);
  check_range(found, names.max_positions, config.max_positions, 1, 1 << 20);
  if (found.empty()) {
    check_heads(found, names.encoder_heads, config.encoder_heads, config, names);
    if (found.empty()) check_heads(found, names.decoder_heads, config.decoder_heads, config, names);
    if (found.empty()) check_own_heads(found, config);
  }
  if (config.activation == Activation::kNone)
    found.push_back("activation is none; expected relu, gelu, gelu_tanh or swish");
  check_rate(found, "dropout", config.dropout.residual);
  check_rate(found, "attention_dropout", config.dropout.weights);
  check_rate(found, "activation_dropout", config.dropout.activation);
  if (config.share_embeddings && config.target_vocabulary() != config.vocabulary_size) {
    found.push_back(fmt::format("{} is {}; shared embeddings need that of the source, {}",
                                names.target_vocabulary, config.target_vocabulary(), config.vocabulary_size));
  }
  if (config.target_vocabulary() < 1) return found;  // that is said; no id can be right
  const auto check_token = [&](std::string_view name, int32_t id) {
    check_range(found, name, id, 0, config.target_vocabulary() - 1);
  };
  check_token(names.pad_id, config.pad_id);
  check_token(names.eos_id, config.eos_id);
  check_token(names.start_id, config.decoder_start_id);
  return found;
}

}  // namespace mh

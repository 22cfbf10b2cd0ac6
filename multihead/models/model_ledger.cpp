#include "multihead/models/model_ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/models/label_head.h"

namespace mh {
namespace {

constexpr int64_t kFloat = 4;  // bytes

LedgerPart named(LedgerPart part, const char* name) {
  part.name = name;
  return part;
}

int64_t parameters_of(const NormConfig& norm, int64_t d) {
  return norm.kind == NormKind::kLayer && norm.biases == Biases::kAll ? 2 * d : d;
}

/// Tables and the norm of one embedding.
int64_t parameters_of(const EmbeddingConfig& embedding) {
  const int64_t d = embedding.d_model;
  return (embedding.vocabulary + embedding.token_types) * d +
         (embedding.norm ? parameters_of(*embedding.norm, d) : 0);
}

/// Rows that are read from tables and written.
LedgerPart embedded(const EmbeddingConfig& embedding, Positions positions, int64_t rows) {
  const bool added = positions == Positions::kLearned || positions == Positions::kSinusoidal;
  const int64_t numbers = rows * embedding.d_model;
  return {.name = "embeddings",
          .other_flops = numbers * ((embedding.scaled ? 1 : 0) + (added ? 1 : 0)),
          .read_bytes = kFloat * 2 * numbers,
          .written_bytes = kFloat * numbers,
          .kept_bytes = kFloat * numbers};
}

int64_t learned_positions(Positions positions, int32_t max_positions, int32_t offset, int64_t d) {
  return positions == Positions::kLearned ? (int64_t{max_positions} + offset) * d : 0;
}

LedgerPart embeddings(const EncoderDecoderConfig& c, int64_t source, int64_t target) {
  LedgerPart all = embedded(c.embedding, c.encoder.positions, source) +=
      embedded(c.target_embedding, c.decoder.positions, target);
  all.parameters = parameters_of(c.embedding) + parameters_of(c.target_embedding);
  if (c.share_embeddings) all.parameters -= c.target_embedding.vocabulary * c.decoder.d_model;
  for (const StackConfig* stack : {&c.encoder, &c.decoder})
    all.parameters += learned_positions(stack->positions, c.max_positions, c.position_offset, stack->d_model);
  return all;
}

LedgerPart embeddings(const CausalConfig& c, int64_t tokens) {
  LedgerPart all = embedded(c.embedding, c.positions, tokens);
  all.parameters = parameters_of(c.embedding) +
                   learned_positions(c.positions, c.max_positions, c.position_offset, c.stack.d_model);
  return all;
}

LedgerPart feed_forward(const StackConfig& stack, int64_t tokens) {
  const int64_t d = stack.d_model;
  LedgerPart all{.name = {}};
  for (const LayerConfig& layer : stack.layers) {
    const int64_t d_ff = layer.feed_forward.d_ff, hidden = layer.feed_forward.gated ? 2 * d_ff : d_ff;
    const bool relu = layer.feed_forward.activation == Activation::kRelu;
    const int64_t biases = layer.feed_forward.biases == Biases::kAll ? hidden + d : 0;
    all += {.name = {},
            .parameters = (hidden + d_ff) * d + biases,
            .multiply_adds = tokens * d * (hidden + d_ff),
            .other_flops = tokens * (biases + hidden),
            .exponentials = relu ? 0 : tokens * d_ff,
            .read_bytes = kFloat * tokens * (d + d_ff),
            .written_bytes = kFloat * tokens * (d_ff + d),
            .kept_bytes = kFloat * tokens * hidden * (relu ? 1 : 2)};  // others need what went in, too
  }
  return all;
}

/// One norm of a stack.
LedgerPart one_norm(const NormConfig& norm, int64_t d, int64_t tokens) {
  const bool biased = norm.kind == NormKind::kLayer && norm.biases == Biases::kAll;
  const int64_t numbers = tokens * d;
  return {.name = {},
          .parameters = parameters_of(norm, d),
          .other_flops = (norm.kind == NormKind::kRms ? 4
                          : biased                    ? 7
                                                      : 6) *
                         numbers,
          .read_bytes = kFloat * numbers,
          .written_bytes = kFloat * (numbers + 2 * tokens),
          .kept_bytes = kFloat * (numbers + 2 * tokens)};
}

/// Norms of a layer's sublayers.
int64_t norms_of(const StackConfig& stack, const LayerConfig& layer) {
  const NormPlacement placement = stack.norm.placement;
  const int64_t sublayers = stack.cross_attention ? 3 : 2;
  int64_t norms = placement == NormPlacement::kPost ? sublayers : 0;
  if (norms_input(placement))
    norms +=
        sublayers - (layer.norm_before ? 0 : 1) - (stack.order == SublayerOrder::kParallelOneNorm ? 1 : 0);
  return norms + (norms_output(placement) ? sublayers : 0);
}

/// Norms, and a residual sum for each sublayer.
LedgerPart norms(const StackConfig& stack, int64_t tokens) {
  const int64_t numbers = tokens * stack.d_model;
  const LedgerPart sum{.name = {},
                       .other_flops = numbers,
                       .read_bytes = kFloat * 2 * numbers,
                       .written_bytes = kFloat * numbers,
                       .kept_bytes = kFloat * numbers};
  int64_t count = stack.norm.is_at_end() ? 1 : 0;
  for (const LayerConfig& layer : stack.layers) count += norms_of(stack, layer);
  return sum.repeated(std::ssize(stack.layers) * (stack.cross_attention ? 3 : 2)) +=
         one_norm(stack.norm, stack.d_model, tokens).repeated(count);
}

struct CountedOutput {
  int64_t d_model, words;
  bool tied, biased = false, scaled = false;
};

LedgerPart vocabulary(const CountedOutput& of, int64_t tokens) {
  const int64_t biases = of.biased ? of.words : 0;
  return {.name = "vocabulary",
          .parameters = (of.tied ? 0 : of.words * of.d_model) + biases,
          .multiply_adds = tokens * of.d_model * of.words,
          .other_flops = tokens * (3 * of.words + biases + (of.scaled ? of.d_model : 0)),
          .exponentials = tokens * of.words,
          .read_bytes = kFloat * tokens * of.d_model};
}

/// Whether a layer uses the first one's table of T5's positions.
bool uses_first_bias(const StackConfig& stack, size_t layer) {
  return stack.one_bias && layer > 0;
}

/// How self-attention of a layer is counted.
LedgerOptions self_options(const StackConfig& stack, size_t layer) {
  const RotaryOptions& rotary = stack.layers[layer].rotary ? *stack.layers[layer].rotary : stack.rotary;
  return {.mask = stack.mask_of(layer).mask(),
          .positions = stack.positions_of(layer),
          .rotated = rotary.rotated,
          .buckets = uses_first_bias(stack, layer) ? 0 : stack.buckets.count,
          .disentangled = stack.disentangled,
          .vectors_of_another = layer > 0};
}

/// The attentions of one kind of all layers together; `first` gets layer 0's.
LedgerPart attentions(const StackConfig& stack, HeadGeometry LayerConfig::*kind, int64_t queries,
                      int64_t keys, Ledger& first) {
  const bool self = kind == &LayerConfig::self_attention;
  LedgerPart all{.name = {}};
  Ledger last;
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const LayerConfig& layer = stack.layers[i];
    // Layers are mostly alike, and counting takes a while for long sequences.
    const bool alike = i > 0 && completed(layer.*kind, stack.d_model, "ledger") == last.geometry &&
                       (!self || (stack.mask_of(i) == stack.mask_of(i - 1) &&
                                  stack.positions_of(i) == stack.positions_of(i - 1) &&
                                  uses_first_bias(stack, i) == uses_first_bias(stack, i - 1) &&
                                  (stack.positions_of(i) != Positions::kDisentangled || i > 1) &&
                                  layer.rotary == stack.layers[i - 1].rotary));
    if (!alike)
      last = ledger(layer.*kind, stack.d_model, queries, keys,
                    self ? self_options(stack, i) : LedgerOptions{.keys = LedgerOptions::Keys::kMemory});
    if (i == 0) first = last;
    all += last.total();
  }
  return all;
}

void require_readable(int64_t tokens, int32_t max_positions) {
  if (0 <= tokens && tokens <= max_positions) return;
  throw UsageError(
      fmt::format("tokens is {}; this model reads sequences of 0 ... {}", tokens, max_positions));
}

}  // namespace

LedgerPart ModelLedger::total() const {
  LedgerPart all{.name = "total"};
  for (const LedgerPart& part : parts) all += part;
  return all;
}

ModelLedger model_ledger(const EncoderDecoderConfig& c, int64_t source, int64_t target) {
  if (const auto wrong = problems_of(c); !wrong.empty())
    throw UsageError(fmt::format("this Transformer cannot be built: {}", fmt::join(wrong, "; ")));
  if (c.labels) throw UsageError("an encoder-decoder that classifies is not counted; give a translator");
  for (const int64_t tokens : {source, target}) require_readable(tokens, c.max_positions);
  ModelLedger found;

  const auto add = [&](const char* name, LedgerPart part) {
    found.parts.push_back(named(std::move(part), name));
  };
  add("embeddings", embeddings(c, source, target));
  const StackConfig &encoder = c.encoder, &decoder = c.decoder;
  add("encoder self-attention",
      attentions(encoder, &LayerConfig::self_attention, source, source, found.encoder_self));
  add("encoder feed-forward", feed_forward(encoder, source));
  add("encoder norms", norms(encoder, source));
  add("decoder self-attention",
      attentions(decoder, &LayerConfig::self_attention, target, target, found.decoder_self));
  add("decoder cross-attention",
      attentions(decoder, &LayerConfig::cross_attention, target, source, found.cross));
  add("decoder feed-forward", feed_forward(decoder, target));
  add("decoder norms", norms(decoder, target));
  add("vocabulary", vocabulary({.d_model = decoder.d_model,
                                .words = c.target_vocabulary(),
                                .tied = c.tied,
                                .scaled = c.scale_states},
                               target));
  return found;
}

ModelLedger model_ledger(const CausalConfig& c, int64_t tokens) {
  if (const auto wrong = problems_of(c); !wrong.empty())
    throw UsageError(fmt::format("this Transformer cannot be built: {}", fmt::join(wrong, "; ")));
  require_readable(tokens, c.max_positions);
  ModelLedger found;
  const auto add = [&](const char* name, LedgerPart part) {
    found.parts.push_back(named(std::move(part), name));
  };
  const StackConfig& stack = c.stack;
  add("embeddings", embeddings(c, tokens));
  add("self-attention", attentions(stack, &LayerConfig::self_attention, tokens, tokens, found.decoder_self));
  add("feed-forward", feed_forward(stack, tokens));
  add("norms", norms(stack, tokens));
  if (c.labels) {
    LedgerPart labels{.name = {}};
    const int64_t rows = c.labels->rows == LabelRows::kTokens ? tokens : std::min<int64_t>(tokens, 1);
    labels.add_affine(rows, stack.d_model, c.labels->labels, c.labels->bias);
    add("labels", labels);
  }
  if (!c.predicts) return found;
  const int64_t words = c.embedding.vocabulary;
  add("vocabulary",
      vocabulary({.d_model = stack.d_model, .words = words, .tied = c.tied, .biased = c.output_bias},
                 tokens));
  if (c.logit_soft_cap)
    add("logit cap", {.name = {}, .other_flops = 2 * tokens * words, .exponentials = tokens * words});
  return found;
}

}  // namespace mh

#include "multihead/models/model_ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "multihead/base/error.h"

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

LedgerPart embeddings(const EncoderDecoderConfig& c, int64_t source, int64_t target) {
  const int64_t d = c.encoder.d_model;
  const auto flops = [&](const EmbeddingConfig& embedding, Positions positions, int64_t rows) {
    const bool added = positions == Positions::kLearned || positions == Positions::kSinusoidal;
    return rows * d * ((embedding.scaled ? 1 : 0) + (added ? 1 : 0));
  };
  const auto learned = [&](Positions positions) {
    return positions == Positions::kLearned ? int64_t{c.max_positions} + c.position_offset : 0;
  };
  const int64_t words = c.embedding.vocabulary + (c.share_embeddings ? 0 : c.target_embedding.vocabulary);
  int64_t besides = 0;
  for (const EmbeddingConfig* embedding : {&c.embedding, &c.target_embedding})
    besides += embedding->token_types * d + (embedding->norm ? parameters_of(*embedding->norm, d) : 0);
  return {.name = "embeddings",
          .parameters = d * (words + learned(c.encoder.positions) + learned(c.decoder.positions)) + besides,
          .other_flops = flops(c.embedding, c.encoder.positions, source) +
                         flops(c.target_embedding, c.decoder.positions, target),
          .read_bytes = kFloat * 2 * (source + target) * d,
          .written_bytes = kFloat * (source + target) * d,
          .kept_bytes = kFloat * (source + target) * d};
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

/// At the end of a stack.
LedgerPart final_norm(const StackConfig& stack, int64_t tokens) {
  if (!stack.norm.is_at_end()) return {};
  const int64_t numbers = tokens * stack.d_model;
  return {.name = {},
          .parameters = parameters_of(stack.norm, stack.d_model),
          .other_flops = 7 * numbers,
          .read_bytes = kFloat * numbers,
          .written_bytes = kFloat * (numbers + 2 * tokens),
          .kept_bytes = kFloat * (numbers + 2 * tokens)};
}

/// A norm and a residual sum for each sublayer, before the sublayer (kPre) or behind it.
LedgerPart norms(const StackConfig& stack, int64_t tokens) {
  const int64_t numbers = tokens * stack.d_model;
  const int64_t sublayers = std::ssize(stack.layers) * (stack.cross_attention ? 3 : 2);
  return LedgerPart{.name = {},
                    .parameters = parameters_of(stack.norm, stack.d_model),
                    .other_flops = 8 * numbers,
                    .read_bytes = kFloat * 3 * numbers,
                    .written_bytes = kFloat * (2 * numbers + 2 * tokens),
                    .kept_bytes = kFloat * (2 * numbers + 2 * tokens)}
             .repeated(sublayers) += final_norm(stack, tokens);
}

LedgerPart vocabulary(const EncoderDecoderConfig& c, int64_t tokens) {
  const int64_t d = c.decoder.d_model, words = c.target_vocabulary();
  return {.name = "vocabulary",
          .parameters = c.tied ? 0 : words * d,
          .multiply_adds = tokens * d * words,
          .other_flops = 3 * tokens * words,
          .exponentials = tokens * words,
          .read_bytes = kFloat * tokens * d};
}

/// The attentions of one kind of all layers together; `first` gets layer 0's.
LedgerPart attentions(const StackConfig& stack, HeadGeometry LayerConfig::*kind, int64_t queries,
                      int64_t keys, const LedgerOptions& options, Ledger& first) {
  LedgerPart all{.name = {}};
  Ledger last;
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const HeadGeometry& heads = stack.layers[i].*kind;
    // Layers are mostly alike, and counting takes a while for long sequences.
    if (i == 0 || completed(heads, stack.d_model, "ledger") != last.geometry)
      last = ledger(heads, stack.d_model, queries, keys, options);
    if (i == 0) first = last;
    all += last.total();
  }
  return all;
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
  for (const int64_t tokens : {source, target}) {
    if (0 <= tokens && tokens <= c.max_positions) continue;
    throw UsageError(
        fmt::format("tokens is {}; this model reads sequences of 0 ... {}", tokens, c.max_positions));
  }
  ModelLedger found;

  const auto add = [&](const char* name, LedgerPart part) {
    found.parts.push_back(named(std::move(part), name));
  };
  add("embeddings", embeddings(c, source, target));
  const StackConfig &encoder = c.encoder, &decoder = c.decoder;
  add("encoder self-attention", attentions(encoder, &LayerConfig::self_attention, source, source,
                                           {.positions = encoder.positions}, found.encoder_self));
  add("encoder feed-forward", feed_forward(encoder, source));
  add("encoder norms", norms(encoder, source));
  add("decoder self-attention",
      attentions(decoder, &LayerConfig::self_attention, target, target,
                 {.mask = Mask::causal(), .positions = decoder.positions}, found.decoder_self));
  add("decoder cross-attention", attentions(decoder, &LayerConfig::cross_attention, target, source,
                                            {.keys = LedgerOptions::Keys::kMemory}, found.cross));
  add("decoder feed-forward", feed_forward(decoder, target));
  add("decoder norms", norms(decoder, target));
  add("vocabulary", vocabulary(c, target));
  return found;
}

}  // namespace mh

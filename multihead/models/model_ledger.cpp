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

LedgerPart embeddings(const EncoderDecoderConfig& c, int64_t source, int64_t target) {
  const int64_t d = c.d_model, rows = source + target;
  const int64_t tables = c.share_embeddings ? c.vocabulary_size : c.vocabulary_size + c.target_vocabulary();
  const bool learned = c.positions == Positions::kLearned;
  const int64_t added = learned || c.positions == Positions::kSinusoidal ? 1 : 0;
  return {.name = "embeddings",
          .parameters = tables * d + (learned ? 2 * int64_t{c.max_positions} * d : 0),
          .other_flops = rows * d * ((c.scale_embedding ? 1 : 0) + added),
          .read_bytes = kFloat * 2 * rows * d,
          .written_bytes = kFloat * rows * d,
          .kept_bytes = kFloat * rows * d};
}

LedgerPart feed_forward(const EncoderDecoderConfig& c, int64_t d_ff, int64_t tokens) {
  const int64_t d = c.d_model;
  const bool relu = c.activation == Activation::kRelu;
  return {.name = {},
          .parameters = 2 * d * d_ff + d_ff + d,
          .multiply_adds = 2 * tokens * d * d_ff,
          .other_flops = tokens * (2 * d_ff + d),
          .exponentials = relu ? 0 : tokens * d_ff,
          .read_bytes = kFloat * tokens * (d + d_ff),
          .written_bytes = kFloat * tokens * (d_ff + d),
          .kept_bytes = kFloat * tokens * d_ff * (relu ? 1 : 2)};  // others need what went in, too
}

/// A norm and a residual sum for each of `sublayers`; before the sublayer (kPre) or behind it.
LedgerPart norms(const EncoderDecoderConfig& c, int64_t sublayers, int64_t tokens) {
  const int64_t d = c.d_model, numbers = tokens * d;
  return LedgerPart{.name = {},
                    .parameters = 2 * d,
                    .other_flops = 8 * numbers,
                    .read_bytes = kFloat * 3 * numbers,
                    .written_bytes = kFloat * (2 * numbers + 2 * tokens),
                    .kept_bytes = kFloat * (2 * numbers + 2 * tokens)}
      .repeated(sublayers);
}

/// At the end of a stack of pre-norm layers.
LedgerPart final_norm(const EncoderDecoderConfig& c, int64_t tokens) {
  if (c.norm == NormPlacement::kPost) return {};
  const int64_t numbers = tokens * c.d_model;
  return {.name = {},
          .parameters = 2 * c.d_model,
          .other_flops = 7 * numbers,
          .read_bytes = kFloat * numbers,
          .written_bytes = kFloat * (numbers + 2 * tokens),
          .kept_bytes = kFloat * (numbers + 2 * tokens)};
}

LedgerPart vocabulary(const EncoderDecoderConfig& c, int64_t tokens) {
  const int64_t d = c.d_model, words = c.target_vocabulary();
  return {.name = "vocabulary",
          .parameters = c.share_embeddings ? 0 : words * d,
          .multiply_adds = tokens * d * words,
          .other_flops = 3 * tokens * words,
          .exponentials = tokens * words,
          .read_bytes = kFloat * tokens * d};
}

/// The attentions "SIDE.0.KIND" ... of all layers together; `first` gets layer 0's.
LedgerPart attentions(const EncoderDecoderConfig& c, const char* side, int layers, const char* kind,
                      int64_t queries, int64_t keys, const LedgerOptions& options, Ledger& first) {
  LedgerPart all{.name = {}};
  Ledger last;
  for (int i = 0; i < layers; ++i) {
    const HeadGeometry heads = c.heads_of(fmt::format("{}.{}.{}", side, i, kind));
    // Layers are mostly alike, and counting takes a while for long sequences.
    if (i == 0 || completed(heads, c.d_model, "ledger") != last.geometry)
      last = ledger(heads, c.d_model, queries, keys, options);
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
  add("encoder self-attention", attentions(c, "encoder", c.encoder_layers, "self_attention", source, source,
                                           {.positions = c.positions}, found.encoder_self));
  add("encoder feed-forward", feed_forward(c, c.encoder_ff, source).repeated(c.encoder_layers));
  add("encoder norms", norms(c, 2 * int64_t{c.encoder_layers}, source) += final_norm(c, source));
  add("decoder self-attention",
      attentions(c, "decoder", c.decoder_layers, "self_attention", target, target,
                 {.mask = Mask::causal(), .positions = c.positions}, found.decoder_self));
  add("decoder cross-attention", attentions(c, "decoder", c.decoder_layers, "cross_attention", target, source,
                                            {.keys = LedgerOptions::Keys::kMemory}, found.cross));
  add("decoder feed-forward", feed_forward(c, c.decoder_ff, target).repeated(c.decoder_layers));
  add("decoder norms", norms(c, 3 * int64_t{c.decoder_layers}, target) += final_norm(c, target));
  add("vocabulary", vocabulary(c, target));
  return found;
}

}  // namespace mh

// ModernBERT (Warner et al. 2024; Hugging Face's ModernBertModel, ModernBertForMaskedLM): an encoder with pre-norm layers,
// rotary positions, gated feed-forward layers, and, unless config.json says otherwise, no biases. Some layers see the whole
// text, the others only what is near; each kind has its own angles. Queries, keys and values are one fused matrix, and so
// are the two of a gated layer. The first layer has no norm before its attention, since the embeddings have one.
#include "multihead/folders/families/bert.h"

#include <fmt/format.h>

#include "multihead/folders/families/rope_fields.h"
#include "multihead/io/config.h"

namespace mh {
namespace {

constexpr EnumNames<LabelRows> kClassifierPoolings = {{"cls", LabelRows::kFirst}, {"mean", LabelRows::kMean}};

/// Where a key may be missing, the start value is ModernBertConfig's default.
struct ModernBertFields {
  int32_t vocabulary = 50368, positions = 8192, d_model = 768, layers = 22, heads = 12, d_ff = 1152;
  Activation activation = Activation::kGelu, masked_words_activation = Activation::kGelu;
  float epsilon = 1e-5f, attention_dropout = 0, activation_dropout = 0;
  bool norm_bias = false, attention_bias = false, feed_forward_bias = false, masked_words_bias = false;
  bool decoder_bias = true, tied = true;
  LabelRows classifier_pooling = LabelRows::kFirst;
  std::optional<int32_t> local = {};       // keys that a local layer sees, besides its own; none: 128
  std::optional<int32_t> local_half = {};  // half of them; it counts where both are there
  std::optional<std::vector<std::string>> layer_types = {};
  std::optional<RopeOfLayers> rope = {};
  std::optional<int32_t> pad = 50283;
  // Before transformers 5, in the place of layer_types and rope_parameters.
  int32_t full_every = 3;
  std::optional<double> full_base = 160000, local_base = 10000;

  template <class V>
  void visit(V& v) {
    v("vocab_size", vocabulary, {.low = 2, .high = 1 << 24});
    v("max_position_embeddings", positions, {.low = 1, .high = 1 << 20});
    v("hidden_size", d_model, {.low = 1, .high = 1 << 16});
    v("num_hidden_layers", layers, {.low = 1, .high = 1024});
    v("num_attention_heads", heads, {.low = 1, .high = 1024});
    v("intermediate_size", d_ff, {.low = 1, .high = 1 << 20});
    v("hidden_activation", activation, kHuggingFaceActivations);
    v("classifier_activation", masked_words_activation, kHuggingFaceActivations);
    v("norm_eps", epsilon, {.low = 1e-30f, .high = 1});
    v("attention_dropout", attention_dropout, {.low = 0, .high = 0.999f});
    v("mlp_dropout", activation_dropout, {.low = 0, .high = 0.999f});
    v("norm_bias", norm_bias);
    v("attention_bias", attention_bias);
    v("mlp_bias", feed_forward_bias);
    v("classifier_bias", masked_words_bias);
    v("classifier_pooling", classifier_pooling, kClassifierPoolings);
    v("decoder_bias", decoder_bias);
    v("tie_word_embeddings", tied);
    v("local_attention", local, {.low = 2, .high = 1 << 20});
    v("sliding_window", local_half, {.low = 1, .high = 1 << 19});
    v("layer_types", layer_types);
    v("rope_parameters", rope);
    v("pad_token_id", pad, kTokenIds);
    v("global_attn_every_n_layers", full_every, {.low = 1, .high = 1024});
    v("global_rope_theta", full_base, {.low = 1e-3, .high = 1e12});
    v("local_rope_theta", local_base, {.low = 1e-3, .high = 1e12});
  }
};

EncoderConfig modernbert_config(const ModernBertFields& f, std::vector<std::string>& wrong,
                                std::vector<std::string>& remarks) {
  const auto biases = [](bool has) { return has ? Biases::kAll : Biases::kNone; };
  const NormConfig norm{
      .placement = NormPlacement::kPre, .epsilon = f.epsilon, .biases = biases(f.norm_bias)};
  const double full_base = f.full_base.value_or(160000);
  const RopeOfLayers rope = f.rope.value_or(RopeOfLayers{});
  const auto rotary = [&](const RopeFields& fields, double base) {
    return positions_of(fields, {.base = base, .d_head = f.d_model / f.heads, .max_positions = f.positions},
                        wrong, remarks)
        .rotary;
  };
  EncoderConfig config{
      .embedding = {.vocabulary = f.vocabulary, .d_model = f.d_model, .scaled = false, .norm = norm},
      .positions = Positions::kRotary,
      .max_positions = f.positions,
      .stack = {.name = "encoder",
                .d_model = f.d_model,
                .positions = Positions::kRotary,
                .rotary = rotary(rope.full, full_base),
                .norm = norm,
                .dropout = {.residual = 0,
                            .weights = f.attention_dropout,
                            .activation = f.activation_dropout}},
      .masked_words =
          MaskedWordsConfig{.activation = f.masked_words_activation, .biases = biases(f.masked_words_bias)},
      .pad_id = f.pad.value_or(-1)};
  config.stack.layers.assign(static_cast<size_t>(f.layers),
                             {.self_attention = {.heads = f.heads, .biases = biases(f.attention_bias)},
                              .feed_forward = {.d_ff = f.d_ff,
                                               .activation = f.activation,
                                               .gated = true,
                                               .biases = biases(f.feed_forward_bias)}});
  const RotaryOptions near = rotary(rope.sliding, f.local_base.value_or(full_base));
  const int32_t farthest = f.local_half.value_or(f.local.value_or(128) / 2);  // in transformers 5, too
  for (size_t i = 0; i < config.stack.layers.size(); ++i) {
    if (!has_window(f.layer_types, i, i % static_cast<size_t>(f.full_every) != 0)) continue;
    config.stack.layers[i].mask = StackMask::local(farthest);
    config.stack.layers[i].rotary = near;
  }
  config.stack.layers.front().norm_before = false;
  return config;
}

constexpr std::array kModernBertTensors = {
    TensorName{"embedding", "embeddings.tok_embeddings.weight"},
    TensorName{"embedding.norm.gain", "embeddings.norm.weight", kBertRow},
    TensorName{"embedding.norm.bias", "embeddings.norm.bias", kBertRow},
    TensorName{"encoder.#.self_attention_norm.gain", "layers.#.attn_norm.weight", kBertRow},
    TensorName{"encoder.#.self_attention_norm.bias", "layers.#.attn_norm.bias", kBertRow},
    TensorName{"encoder.#.self_attention.w_q", "layers.#.attn.Wqkv.weight", kBertMatrix, 0, 3},
    TensorName{"encoder.#.self_attention.w_k", "layers.#.attn.Wqkv.weight", kBertMatrix, 1, 3},
    TensorName{"encoder.#.self_attention.w_v", "layers.#.attn.Wqkv.weight", kBertMatrix, 2, 3},
    TensorName{"encoder.#.self_attention.b_q", "layers.#.attn.Wqkv.bias", kBertRow, 0, 3},
    TensorName{"encoder.#.self_attention.b_k", "layers.#.attn.Wqkv.bias", kBertRow, 1, 3},
    TensorName{"encoder.#.self_attention.b_v", "layers.#.attn.Wqkv.bias", kBertRow, 2, 3},
    TensorName{"encoder.#.self_attention.w_o", "layers.#.attn.Wo.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention.b_o", "layers.#.attn.Wo.bias", kBertRow},
    TensorName{"encoder.#.feed_forward_norm.gain", "layers.#.mlp_norm.weight", kBertRow},
    TensorName{"encoder.#.feed_forward_norm.bias", "layers.#.mlp_norm.bias", kBertRow},
    TensorName{"encoder.#.feed_forward.w_gate", "layers.#.mlp.Wi.weight", kBertMatrix, 0, 2},
    TensorName{"encoder.#.feed_forward.b_gate", "layers.#.mlp.Wi.bias", kBertRow, 0, 2},
    TensorName{"encoder.#.feed_forward.w_1", "layers.#.mlp.Wi.weight", kBertMatrix, 1, 2},
    TensorName{"encoder.#.feed_forward.b_1", "layers.#.mlp.Wi.bias", kBertRow, 1, 2},
    TensorName{"encoder.#.feed_forward.w_2", "layers.#.mlp.Wo.weight", kBertMatrix},
    TensorName{"encoder.#.feed_forward.b_2", "layers.#.mlp.Wo.bias", kBertRow},
    TensorName{"encoder.final_norm.gain", "final_norm.weight", kBertRow},
    TensorName{"encoder.final_norm.bias", "final_norm.bias", kBertRow},
    TensorName{"masked_words.w", "head.dense.weight", kBertMatrix},
    TensorName{"masked_words.b", "head.dense.bias", kBertRow},
    TensorName{"masked_words.norm.gain", "head.norm.weight", kBertRow},
    TensorName{"masked_words.norm.bias", "head.norm.bias", kBertRow},
    TensorName{"masked_words.output_bias", "decoder.bias", kBertRow},
    TensorName{"labels.dense.w", "head.dense.weight", kBertMatrix},
    TensorName{"labels.dense.b", "head.dense.bias", kBertRow},
    TensorName{"labels.norm.gain", "head.norm.weight", kBertRow},
    TensorName{"labels.norm.bias", "head.norm.bias", kBertRow},
    TensorName{"labels.w", "classifier.weight", kBertMatrix},
    TensorName{"labels.b", "classifier.bias", kBertRow},
};

constexpr std::array kModernBertTwins = {TensorTwin{"decoder.weight", "embeddings.tok_embeddings.weight"}};

KnownKeys modernbert_keys() {
  constexpr std::string_view kOfBoth = "expected rope_parameters with full_attention and sliding_attention";
  return {.obeyed = keys_of(ModernBertFields()),
          .rules = {{.key = "initializer_cutoff_factor"},
                    {.key = "embedding_dropout"},
                    {.key = "deterministic_flash_attn"},
                    {.key = "reference_compile"},
                    {.key = "repad_logits_with_grad"},
                    {.key = "sparse_prediction"},
                    {.key = "sparse_pred_ignore_index"},
                    {.key = "position_embedding_type"},  // of older versions, which did not read it either
                    {.key = "is_decoder", .harmless = "[false]", .refused = "expected an encoder"},
                    {.key = "is_causal", .harmless = "[false]"},
                    {.key = "use_bidirectional_attention", .harmless = "[true]"},
                    {.key = "rope_scaling", .harmless = "[{}]", .refused = kOfBoth},
                    {.key = "rope_parameters.rope_type", .refused = kOfBoth},
                    {.key = "rope_parameters.type", .refused = kOfBoth},
                    {.key = "rope_parameters.rope_theta", .refused = kOfBoth},
                    {.key = "rope_parameters.factor", .refused = kOfBoth}}};
}

FolderPlan read_modernbert(std::string_view json, std::string_view name) {
  ModernBertFields fields;
  from_json(fields, json, name, UnknownKeys::kIgnore);
  std::vector<std::string> wrong;
  check_layer_types(fields.layer_types, fields.layers, wrong);
  if (!fields.decoder_bias)
    wrong.emplace_back("decoder_bias is false; expected a bias of the output for masked words");
  std::vector<std::string> remarks;
  const EncoderConfig config = modernbert_config(fields, wrong, remarks);  // before `wrong` is passed on
  const LabelDense dense{.activation = fields.masked_words_activation,
                         .biases = config.masked_words->biases,
                         .norm = config.stack.norm};
  FolderPlan plan = encoder_plan(config, fields.tied, read_labels(json, name),
                                 {.model_type = "modernbert",
                                  .prefix = "model.",
                                  .tensors = kModernBertTensors,
                                  .masked_words = "decoder.bias",
                                  .twins = kModernBertTwins,
                                  .prunes_heads = false,
                                  .text_labels = {.rows = fields.classifier_pooling, .dense = dense},
                                  .token_labels = {.rows = LabelRows::kTokens, .dense = dense},
                                  .other_heads = {"classifier.", "head."}},
                                 name, wrong);
  plan.remarks.insert(plan.remarks.end(), remarks.begin(), remarks.end());
  return plan;
}

}  // namespace

constexpr OracleAttention kModernBertAttention[] = {
    {.module = "attn", .queries = "attn.Wqkv", .output = "attn.Wo", .float32_softmax = true}};
constexpr OracleStack kModernBertStack[] = {{.name = "encoder",
                                             .layers = "layers",
                                             .states = "final_norm",
                                             .attentions = kModernBertAttention,
                                             .second_linear = "mlp.Wo"}};
constexpr OracleModules kModernBertOracle = {.stacks = kModernBertStack};

extern const Family kModernBertFamily;
const Family kModernBertFamily = {
    "modernbert", "an encoder of ModernBertModel", read_modernbert, modernbert_keys, {}, &kModernBertOracle};

}  // namespace mh

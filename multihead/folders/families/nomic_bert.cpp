// Nomic BERT (Nussbaum et al. 2024; Hugging Face's NomicBertModel, and nomic's own code before): BERT with rotary positions, gated
// feed-forward layers and no biases in its layers. Queries, keys and values are one fused matrix. config.json spells its sizes as
// transformers does (hidden_size), as nomic's code does, which began as GPT-2's (n_embd), or in both ways.
#include "multihead/folders/families/bert.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "multihead/base/error.h"
#include "multihead/folders/families/rope_fields.h"
#include "multihead/io/config.h"
#include "multihead/models/config_checks.h"

namespace mh {
namespace {

constexpr EnumNames<Activation> kGatedActivations = {{"swiglu", Activation::kSwish},
                                                     {"geglu", Activation::kGelu}};

/// Where neither spelling of a key is there, NomicBertConfig's default counts.
struct NomicBertFields {
  int32_t vocabulary = 30528, vocabulary_multiple = 1, d_model = 768, layers = 12, heads = 12, types = 2;
  std::optional<int32_t> d_head = {}, pad = 0;
  std::optional<int32_t> d_ff = {}, d_ff_before = {};  // "before": in nomic's spelling
  std::optional<int32_t> positions = {}, positions_before = {};
  std::optional<Activation> activation = {}, activation_before = {};
  std::optional<float> epsilon = {}, epsilon_before = {};
  float dropout = 0, attention_dropout = 0;
  std::optional<RopeFields> rope = {}, older_rope = {};
  std::optional<double> base = {}, base_before = {};
  // Texts that are longer than those of the training turn more slowly, by this factor and their length.
  std::optional<double> long_factor = {};
  int32_t trained_positions = 2048;
  bool tied = true;

  template <class V>
  void visit(V& v) {
    v("vocab_size", vocabulary, {.low = 2, .high = 1 << 24});
    v("pad_vocab_size_multiple", vocabulary_multiple, {.low = 1, .high = 1 << 16});
    v("hidden_size", d_model, {.low = 1, .high = 1 << 16});
    v("num_hidden_layers", layers, {.low = 1, .high = 1024});
    v("num_attention_heads", heads, {.low = 1, .high = 1024});
    v("head_dim", d_head, {.low = 1, .high = kLargestHead});
    v("type_vocab_size", types, {.low = 0, .high = 1024});
    v("intermediate_size", d_ff, {.low = 1, .high = 1 << 20});
    v("n_inner", d_ff_before, {.low = 1, .high = 1 << 20});
    v("max_position_embeddings", positions, {.low = 1, .high = 1 << 20});
    v("n_positions", positions_before, {.low = 1, .high = 1 << 20});
    v("hidden_act", activation, kHuggingFaceActivations);
    v("activation_function", activation_before, kGatedActivations);
    v("layer_norm_eps", epsilon, {.low = 1e-30f, .high = 1});
    v("layer_norm_epsilon", epsilon_before, {.low = 1e-30f, .high = 1});
    v("hidden_dropout_prob", dropout, {.low = 0, .high = 0.999f});
    v("attention_probs_dropout_prob", attention_dropout, {.low = 0, .high = 0.999f});
    v("rope_parameters", rope);
    v("rope_scaling", older_rope);
    v("rope_theta", base, {.low = 1e-3, .high = 1e12});
    v("rotary_emb_base", base_before, {.low = 1e-3, .high = 1e12});
    v("rotary_scaling_factor", long_factor, {.low = 1e-3, .high = 1e6});
    v("max_trained_positions", trained_positions, {.low = 1, .high = 1 << 20});
    v("tie_word_embeddings", tied);
    v("pad_token_id", pad, kTokenIds);
  }
};

int32_t rounded_up(int32_t number, int32_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

class NomicBertReader {
 public:
  explicit NomicBertReader(const NomicBertFields& fields) : f_(fields) {}

  EncoderConfig config() {
    const auto epsilon =
        one_of("layer_norm_eps", f_.epsilon, "layer_norm_epsilon", f_.epsilon_before).value_or(1e-12f);
    const NormConfig norm{.epsilon = epsilon};
    const Activation activation =
        one_of("hidden_act", f_.activation, "activation_function", f_.activation_before)
            .value_or(Activation::kSwish);
    const RopePositions rope = positions();
    // Its own code makes matrices of whole blocks.
    constexpr int32_t kBlock = 256;
    const auto whole = f_.d_ff_before ? std::optional(rounded_up(*f_.d_ff_before, kBlock)) : std::nullopt;
    const int32_t d_ff =
        one_of("intermediate_size", f_.d_ff, "n_inner in blocks of 256", whole).value_or(3072);
    EncoderConfig config{.embedding = {.vocabulary = rounded_up(f_.vocabulary, f_.vocabulary_multiple),
                                       .d_model = f_.d_model,
                                       .scaled = false,
                                       .token_types = f_.types,
                                       .norm = norm},
                         .positions = Positions::kRotary,
                         .max_positions = rope.longest,
                         .stack = {.name = "encoder",
                                   .d_model = f_.d_model,
                                   .positions = Positions::kRotary,
                                   .rotary = rope.rotary,
                                   .norm = norm,
                                   .dropout = {.residual = f_.dropout, .weights = f_.attention_dropout}},
                         .masked_words = MaskedWordsConfig{.activation = activation},
                         .pad_id = f_.pad.value_or(-1)};
    config.stack.layers.assign(
        static_cast<size_t>(f_.layers),
        {.self_attention = {.heads = f_.heads, .d_key = f_.d_head.value_or(0), .biases = Biases::kNone},
         .feed_forward = {.d_ff = d_ff, .activation = activation, .gated = true, .biases = Biases::kNone}});
    return config;
  }

  std::vector<std::string> wrong = {}, remarks = {};

 private:
  /// The value of a field that has two names.
  template <class T>
  std::optional<T> one_of(std::string_view name, const std::optional<T>& value, std::string_view before,
                          const std::optional<T>& value_before) {
    if (value && value_before && *value != *value_before)
      wrong.push_back(
          fmt::format("{} and {}, which mean the same, differ; keep the right one", name, before));
    return value ? value : value_before;
  }

  RopePositions positions() {
    int32_t longest = std::max(f_.positions.value_or(0), f_.positions_before.value_or(0));
    if (longest == 0) longest = 2048;
    if (f_.long_factor) longest = std::min(longest, f_.trained_positions);
    if (f_.rope && f_.older_rope) expect_equal(*f_.rope, *f_.older_rope, wrong);
    const RopeFields rope = f_.rope ? *f_.rope : f_.older_rope.value_or(RopeFields{});
    const std::optional<double> said = rope.base ? rope.base : f_.base;
    return positions_of(rope,
                        {.base = one_of("rope_theta", said, "rotary_emb_base", f_.base_before).value_or(1000),
                         .d_head = f_.d_head.value_or(f_.d_model / f_.heads),
                         .all_turn = true,
                         .max_positions = longest},
                        wrong, remarks);
  }

  const NomicBertFields& f_;
};

constexpr std::array kNomicBertTensors = {
    TensorName{"embedding", "embeddings.word_embeddings.weight"},
    TensorName{"embedding.types", "embeddings.token_type_embeddings.weight"},
    TensorName{"embedding.norm.gain", "emb_ln.weight", kBertRow},
    TensorName{"embedding.norm.bias", "emb_ln.bias", kBertRow},
    TensorName{"encoder.#.self_attention.w_q", "encoder.layers.#.attn.Wqkv.weight", kBertMatrix, 0, 3},
    TensorName{"encoder.#.self_attention.w_k", "encoder.layers.#.attn.Wqkv.weight", kBertMatrix, 1, 3},
    TensorName{"encoder.#.self_attention.w_v", "encoder.layers.#.attn.Wqkv.weight", kBertMatrix, 2, 3},
    TensorName{"encoder.#.self_attention.w_o", "encoder.layers.#.attn.out_proj.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention_norm.gain", "encoder.layers.#.norm1.weight", kBertRow},
    TensorName{"encoder.#.self_attention_norm.bias", "encoder.layers.#.norm1.bias", kBertRow},
    TensorName{"encoder.#.feed_forward.w_1", "encoder.layers.#.mlp.fc11.weight", kBertMatrix},
    TensorName{"encoder.#.feed_forward.w_gate", "encoder.layers.#.mlp.fc12.weight", kBertMatrix},
    TensorName{"encoder.#.feed_forward.w_2", "encoder.layers.#.mlp.fc2.weight", kBertMatrix},
    TensorName{"encoder.#.feed_forward_norm.gain", "encoder.layers.#.norm2.weight", kBertRow},
    TensorName{"encoder.#.feed_forward_norm.bias", "encoder.layers.#.norm2.bias", kBertRow},
    TensorName{"pooler.w", "pooler.dense.weight", kBertMatrix},
    TensorName{"pooler.b", "pooler.dense.bias", kBertRow},
    TensorName{"masked_words.w", "cls.predictions.transform.dense.weight", kBertMatrix},
    TensorName{"masked_words.b", "cls.predictions.transform.dense.bias", kBertRow},
    TensorName{"masked_words.norm.gain", "cls.predictions.transform.layer_norm.weight", kBertRow},
    TensorName{"masked_words.norm.bias", "cls.predictions.transform.layer_norm.bias", kBertRow},
    TensorName{"masked_words.output_bias", "cls.predictions.bias", kBertRow},
    TensorName{"labels.w", "classifier.weight", kBertMatrix},
    TensorName{"labels.b", "classifier.bias", kBertRow},
};
constexpr std::array kNomicBertTwins = {
    TensorTwin{"cls.predictions.decoder.weight", "embeddings.word_embeddings.weight"},
    TensorTwin{"cls.predictions.decoder.bias", "cls.predictions.bias"},
};
constexpr KeyAlias kNomicBertAliases[] = {
    {"n_embd", "hidden_size"}, {"n_head", "num_attention_heads"}, {"n_layer", "num_hidden_layers"}};

KnownKeys nomic_bert_keys() {
  constexpr std::string_view kNoBiases = "expected layers without biases",
                             kNoExperts = "models with experts are not read";
  return {
      .obeyed = keys_of(NomicBertFields()),
      .rules = {
          {.key = "auto_map"},
          {.key = "is_decoder", .harmless = "[false]", .refused = "expected an encoder"},
          {.key = "is_causal", .harmless = "[false]"},
          {.key = "use_bidirectional_attention", .harmless = "[true]"},
          // Of nomic's code: what it does not do with these values here.
          {.key = "causal", .harmless = "[false]", .refused = "expected an encoder"},
          {.key = "prenorm", .harmless = "[false]", .refused = "expected norms after the sublayers"},
          {.key = "parallel_block", .harmless = "[false]", .refused = "expected one sublayer after another"},
          {.key = "use_rms_norm", .harmless = "[false]", .refused = "expected layer norms"},
          {.key = "qkv_proj_bias", .harmless = "[false]", .refused = kNoBiases},
          {.key = "mlp_fc1_bias", .harmless = "[false]", .refused = kNoBiases},
          {.key = "mlp_fc2_bias", .harmless = "[false]", .refused = kNoBiases},
          {.key = "norm_mlp", .harmless = "[false]", .refused = "expected no norm in feed-forward layers"},
          {.key = "rotary_emb_fraction",
           .harmless = "[1]",
           .refused = "expected 1: all numbers of a head turn"},
          {.key = "rotary_emb_interleaved",
           .harmless = "[false]",
           .refused = "expected pairs of a head's halves"},
          {.key = "rotary_emb_scale_base", .refused = "expected rotary positions without a scale"},
          {.key = "rotary_head_dim", .harmless = "[false]", .refused = "expected positions of tokens"},
          {.key = "partial_rotary_factor",
           .harmless = "[1]",
           .refused = "expected 1: all numbers of a head turn"},
          {.key = "num_heads_kv", .refused = "expected keys and values of each head's own"},
          {.key = "moe_every_n_layers", .harmless = "[0]", .refused = kNoExperts},
          // What it does not read, or what changes only how it computes.
          {.key = "parallel_block_tied_norm"},
          {.key = "scale_attn_weights"},
          {.key = "scale_attn_by_inverse_layer_idx"},
          {.key = "reorder_and_upcast_attn"},
          {.key = "dense_seq_output"},
          {.key = "fused_bias_fc"},
          {.key = "fused_dropout_add_ln"},
          {.key = "use_flash_attn"},
          {.key = "use_xentropy"},
          {.key = "add_pooling_layer"},  // the files say it
          {.key = "summary_*"},
          {.key = "attn_pdrop"},
          {.key = "embd_pdrop"},
          {.key = "resid_pdrop"}}};
}

/// FolderPlan::fields_of_heads. Transformers wants a number of heads that divides hidden_size, though it knows their size.
std::map<std::string, int32_t> nomic_bert_heads(const HeadGeometry& heads, int32_t d_model) {
  if (heads.key_heads != heads.heads || heads.value_heads != heads.heads)
    throw UsageError("it gives each head its own keys and values");
  if (heads.d_key != heads.d_value) throw UsageError("it gives keys and values the same size");
  if (d_model % heads.heads != 0)
    throw UsageError(no_divisor("num_attention_heads", heads.heads, "hidden_size", d_model));
  return {{"num_attention_heads", heads.heads}, {"head_dim", heads.d_key}};
}

FolderPlan read_nomic_bert(std::string_view json, std::string_view name) {
  NomicBertFields fields;
  from_json(fields, json, name, UnknownKeys::kIgnore);
  NomicBertReader reader(fields);
  const EncoderConfig config = reader.config();
  FolderPlan plan = encoder_plan(config, fields.tied, read_labels(json, name),
                                 {.model_type = "nomic_bert",
                                  .prefix = "nomic_bert.",
                                  .prefix_before = "bert.",
                                  .tensors = kNomicBertTensors,
                                  .pooler = "pooler.dense.weight",
                                  .masked_words = "cls.predictions.transform.dense.weight",
                                  .twins = kNomicBertTwins,
                                  .prunes_heads = false,
                                  .text_labels = {.rows = LabelRows::kPooled},
                                  .other_heads = {"classifier.", "qa_outputs."}},
                                 name, reader.wrong);
  plan.place = [place = plan.place](std::string_view parameter) {
    TensorPlace found = place(parameter);
    // A head for masked words that nomic's code saved has no biases.
    found.may_be_missing = parameter == "masked_words.b" || parameter == "masked_words.output_bias";
    return found;
  };
  plan.no_weight = [twins = plan.no_weight](const std::string& tensor, const TensorFiles& files,
                                            const Model& model, Differences& differences) {
    // A table of frequencies, which older versions of that code saved.
    return tensor.ends_with(".rotary_emb.inv_freq") || twins(tensor, files, model, differences);
  };
  plan.fields_of_heads = nomic_bert_heads;
  plan.remarks.insert(plan.remarks.end(), reader.remarks.begin(), reader.remarks.end());
  return plan;
}

}  // namespace

constexpr OracleAttention kNomicBertAttention[] = {{.module = "self_attn",
                                                    .queries = "self_attn.q_proj",
                                                    .keys = "self_attn.k_proj",
                                                    .output = "self_attn.o_proj",
                                                    .sum_norm = "post_attention_layernorm"}};
constexpr OracleStack kNomicBertStack[] = {{.name = "encoder",
                                            .layers = "layers",
                                            .attentions = kNomicBertAttention,
                                            .second_linear = "mlp.down_proj"}};
constexpr OracleModules kNomicBertOracle = {.stacks = kNomicBertStack, .pooler = "pooler"};

extern const Family kNomicBertFamily;
const Family kNomicBertFamily = {"nomic_bert",      "an encoder of NomicBertModel",
                                 read_nomic_bert,   nomic_bert_keys,
                                 kNomicBertAliases, &kNomicBertOracle};

}  // namespace mh

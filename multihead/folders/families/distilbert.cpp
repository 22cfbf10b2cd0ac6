// DistilBERT (Sanh et al. 2019; Hugging Face's DistilBertModel, DistilBertForMaskedLM): BERT without types of
// tokens and pooler, under other names.
#include "multihead/folders/families/bert.h"

#include "multihead/io/config.h"

namespace mh {
namespace {

struct DistilBertFields {
  BertSizes sizes = {.layers = 6, .types = 0};

  template <class V>
  void visit(V& v) {
    v("vocab_size", sizes.vocabulary, {.low = 2, .high = 1 << 24});
    v("max_position_embeddings", sizes.positions, {.low = 1, .high = 1 << 20});
    v("dim", sizes.d_model, {.low = 1, .high = 1 << 16});
    v("n_layers", sizes.layers, {.low = 1, .high = 1024});
    v("n_heads", sizes.heads, {.low = 1, .high = 1024});
    v("hidden_dim", sizes.d_ff, {.low = 1, .high = 1 << 20});
    v("activation", sizes.activation, kHuggingFaceActivations);
    v("dropout", sizes.dropout, {.low = 0, .high = 0.999f});
    v("attention_dropout", sizes.attention_dropout, {.low = 0, .high = 0.999f});
    v("tie_word_embeddings", sizes.tied);
    v("pad_token_id", sizes.pad, kTokenIds);
  }
};

constexpr std::array kDistilBertModules = {
    ModuleName{"encoder.layer.#.attention.self.query", "transformer.layer.#.attention.q_lin"},
    ModuleName{"encoder.layer.#.attention.self.key", "transformer.layer.#.attention.k_lin"},
    ModuleName{"encoder.layer.#.attention.self.value", "transformer.layer.#.attention.v_lin"},
    ModuleName{"encoder.layer.#.attention.output.dense", "transformer.layer.#.attention.out_lin"},
    ModuleName{"encoder.layer.#.attention.output.LayerNorm", "transformer.layer.#.sa_layer_norm"},
    ModuleName{"encoder.layer.#.intermediate.dense", "transformer.layer.#.ffn.lin1"},
    ModuleName{"encoder.layer.#.output.dense", "transformer.layer.#.ffn.lin2"},
    ModuleName{"encoder.layer.#.output.LayerNorm", "transformer.layer.#.output_layer_norm"},
    ModuleName{"cls.predictions.transform.dense", "vocab_transform"},
    ModuleName{"cls.predictions.transform.LayerNorm", "vocab_layer_norm"},
    ModuleName{"cls.predictions", "vocab_projector"},
    ModuleName{"classifier.dense", "pre_classifier"},
};

constexpr std::array<std::string_view, 1> kDistilBertOthers = {"embeddings.position_ids"};
constexpr std::array kDistilBertTwins = {
    TensorTwin{"vocab_projector.weight", "embeddings.word_embeddings.weight"}};

FolderPlan read_distilbert(std::string_view json, std::string_view name) {
  DistilBertFields fields;
  from_json(fields, json, name, UnknownKeys::kIgnore);
  return encoder_plan(
      bert_config(fields.sizes), fields.sizes.tied, read_labels(json, name),
      {.model_type = "distilbert",
       .heads = "n_heads",
       .fields = {.vocabulary = "vocab_size",
                  .d_model = "dim",
                  .max_positions = "max_position_embeddings",
                  .pad_id = "pad_token_id"},
       .prefix = "distilbert.",
       .modules = kDistilBertModules,
       .masked_words = "vocab_projector.bias",
       .no_weights = kDistilBertOthers,
       .twins = kDistilBertTwins,
       .text_labels = {.rows = LabelRows::kFirst, .dense = LabelDense{.activation = Activation::kRelu}}},
      name, {});
}

constexpr KeyAlias kDistilBertAliases[] = {
    {"hidden_size", "dim"}, {"num_attention_heads", "n_heads"}, {"num_hidden_layers", "n_layers"}};

KnownKeys distilbert_keys() {
  return {.obeyed = keys_of(DistilBertFields()),
          .rules = {{.key = "sinusoidal_pos_embds"},  // how the table began, which is in the file
                    {.key = "tie_weights_", .harmless = "[true]"},  // of older versions
                    {.key = "qa_dropout"},
                    {.key = "seq_classif_dropout"},
                    {.key = "is_decoder", .harmless = "[false]", .refused = "expected an encoder"},
                    {.key = "is_causal", .harmless = "[false]"},
                    {.key = "use_bidirectional_attention", .harmless = "[true]"}}};
}

}  // namespace

constexpr OracleAttention kDistilBertAttention[] = {{.module = "attention",
                                                     .queries = "attention.q_lin",
                                                     .keys = "attention.k_lin",
                                                     .output = "attention.out_lin",
                                                     .sum_norm = "sa_layer_norm"}};
constexpr OracleStack kDistilBertStack[] = {{.name = "encoder",
                                             .layers = "transformer.layer",
                                             .attentions = kDistilBertAttention,
                                             .second_linear = "ffn.lin2"}};
constexpr OracleModules kDistilBertOracle = {.stacks = kDistilBertStack};

extern const Family kDistilBertFamily;
const Family kDistilBertFamily = {"distilbert",       "an encoder of DistilBertModel",
                                  read_distilbert,    distilbert_keys,
                                  kDistilBertAliases, &kDistilBertOracle};

}  // namespace mh

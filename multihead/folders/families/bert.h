// What the folders of BERT, RoBERTa, DistilBERT, ELECTRA, MPNet, DeBERTa, ModernBERT and Nomic BERT have in common: they are encoders, whose weight files
// tell whether there are a pooler and a head for masked words. All have a norm after the embeddings, and all but ModernBERT
// post-norm layers; positions are learned, but rotary in the last two, and DeBERTa adds
// products with vectors of distances. A family adds how its config.json spells the sizes, what its tensors are called, and at
// which row of the table its positions begin.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/family.h"
#include "multihead/folders/family_names.h"
#include "multihead/folders/known_keys.h"
#include "multihead/models/config_names.h"
#include "multihead/models/encoder_model.h"

namespace mh {

/// The sizes of such an encoder. The start values are BertConfig's defaults.
struct BertSizes {
  int32_t vocabulary = 30522, d_model = 768, layers = 12, heads = 12, d_ff = 3072, types = 2;
  int32_t least_types = 1;  // 0: of a family whose models may have none
  int32_t positions = 512;  // rows of the table
  Activation activation = Activation::kGelu;
  float epsilon = 1e-12f, dropout = 0.1f, attention_dropout = 0.1f;
  bool tied = true;                // the output for masked words is the table of embeddings
  std::optional<int32_t> pad = 0;  // null: none
  int32_t position_offset = 0;     // rows of the table of positions before that of the first token

  /// Sets the offset. Adds to `wrong` when the table has no rows behind it.
  void put_position_offset(int32_t offset, std::vector<std::string>& wrong);
};

/// The encoder. Its masked_words are what such a head is like, whether or not the model has one.
EncoderConfig bert_config(const BertSizes& sizes);

/// How matrices lie in these files, and vectors.
inline constexpr auto kBertMatrix = TensorPlace::Layout::kTransposed, kBertRow = TensorPlace::Layout::kVector;

/// The tensors of BertForPreTraining, and of its relatives, which call some modules otherwise.
inline constexpr std::array kBertTensors = {
    TensorName{"embedding", "embeddings.word_embeddings.weight"},
    TensorName{"embedding.types", "embeddings.token_type_embeddings.weight"},
    TensorName{"embedding.norm.gain", "embeddings.LayerNorm.weight", kBertRow},
    TensorName{"embedding.norm.bias", "embeddings.LayerNorm.bias", kBertRow},
    TensorName{"positions", "embeddings.position_embeddings.weight"},
    TensorName{"embedding.projection.w", "embeddings_project.weight", kBertMatrix},  // ELECTRA's
    TensorName{"embedding.projection.b", "embeddings_project.bias", kBertRow},
    TensorName{"encoder.0.self_attention.distance_bias", "encoder.relative_attention_bias.weight",
               kBertMatrix},  // MPNet's
    // DeBERTa's.
    TensorName{"encoder.0.self_attention.distance_vectors", "encoder.rel_embeddings.weight"},
    TensorName{"encoder.0.self_attention.distance_norm.gain", "encoder.LayerNorm.weight", kBertRow},
    TensorName{"encoder.0.self_attention.distance_norm.bias", "encoder.LayerNorm.bias", kBertRow},
    TensorName{"encoder.#.self_attention.distance_w_k", "encoder.layer.#.attention.self.pos_key_proj.weight",
               kBertMatrix},
    TensorName{"encoder.#.self_attention.distance_b_k", "encoder.layer.#.attention.self.pos_key_proj.bias",
               kBertRow},
    TensorName{"encoder.#.self_attention.distance_w_q",
               "encoder.layer.#.attention.self.pos_query_proj.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention.distance_b_q", "encoder.layer.#.attention.self.pos_query_proj.bias",
               kBertRow},
    TensorName{"encoder.#.self_attention.w_q", "encoder.layer.#.attention.self.query.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention.b_q", "encoder.layer.#.attention.self.query.bias", kBertRow},
    TensorName{"encoder.#.self_attention.w_k", "encoder.layer.#.attention.self.key.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention.b_k", "encoder.layer.#.attention.self.key.bias", kBertRow},
    TensorName{"encoder.#.self_attention.w_v", "encoder.layer.#.attention.self.value.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention.b_v", "encoder.layer.#.attention.self.value.bias", kBertRow},
    TensorName{"encoder.#.self_attention.w_o", "encoder.layer.#.attention.output.dense.weight", kBertMatrix},
    TensorName{"encoder.#.self_attention.b_o", "encoder.layer.#.attention.output.dense.bias", kBertRow},
    TensorName{"encoder.#.self_attention_norm.gain", "encoder.layer.#.attention.output.LayerNorm.weight",
               kBertRow},
    TensorName{"encoder.#.self_attention_norm.bias", "encoder.layer.#.attention.output.LayerNorm.bias",
               kBertRow},
    TensorName{"encoder.#.feed_forward.w_1", "encoder.layer.#.intermediate.dense.weight", kBertMatrix},
    TensorName{"encoder.#.feed_forward.b_1", "encoder.layer.#.intermediate.dense.bias", kBertRow},
    TensorName{"encoder.#.feed_forward.w_2", "encoder.layer.#.output.dense.weight", kBertMatrix},
    TensorName{"encoder.#.feed_forward.b_2", "encoder.layer.#.output.dense.bias", kBertRow},
    TensorName{"encoder.#.feed_forward_norm.gain", "encoder.layer.#.output.LayerNorm.weight", kBertRow},
    TensorName{"encoder.#.feed_forward_norm.bias", "encoder.layer.#.output.LayerNorm.bias", kBertRow},
    TensorName{"pooler.w", "pooler.dense.weight", kBertMatrix},
    TensorName{"pooler.b", "pooler.dense.bias", kBertRow},
    TensorName{"masked_words.w", "cls.predictions.transform.dense.weight", kBertMatrix},
    TensorName{"masked_words.b", "cls.predictions.transform.dense.bias", kBertRow},
    TensorName{"masked_words.norm.gain", "cls.predictions.transform.LayerNorm.weight", kBertRow},
    TensorName{"masked_words.norm.bias", "cls.predictions.transform.LayerNorm.bias", kBertRow},
    TensorName{"masked_words.output_bias", "cls.predictions.bias", kBertRow},
    TensorName{"labels.dense.w", "classifier.dense.weight", kBertMatrix},
    TensorName{"labels.dense.b", "classifier.dense.bias", kBertRow},
    TensorName{"labels.w", "classifier.weight", kBertMatrix},
    TensorName{"labels.b", "classifier.bias", kBertRow},
};

/// A tensor that repeats another one, which is read.
struct TensorTwin {
  std::string_view tensor, read;
};

/// How one family writes them. Everything is static.
struct BertNames {
  std::string_view model_type;
  std::string_view heads = "num_attention_heads";  // in config.json, as `fields`
  ConfigNames fields = {.vocabulary = "vocab_size",
                        .d_model = "hidden_size",
                        .max_positions = "max_position_embeddings",
                        .pad_id = "pad_token_id"};
  std::string_view prefix = "";         // "bert.": before every tensor of the encoder, or before none
  std::string_view prefix_before = "";  // that of files which older versions wrote; empty: the same
  std::span<const TensorName> tensors = kBertTensors;
  std::span<const ModuleName> modules = {};  // those with other names than in `tensors`
  /// Tensors that are there when the model has a pooler, a head for masked words; empty: it never has one.
  std::string_view pooler = "", masked_words = "";
  std::span<const std::string_view> no_weights = {};  // tensors that are no parameters
  std::span<const TensorTwin> twins =
      {};                    // tensors of the head for masked words that must be equal to others
  bool prunes_heads = true;  // FolderPlan::prunes_heads
  /// What stands before the labels of texts, and of tokens: how many there are config.json says.
  LabelConfig text_labels = {.rows = LabelRows::kFirst}, token_labels = {.rows = LabelRows::kTokens};
  /// FolderPlan::other_heads.
  std::vector<std::string> other_heads = {"classifier.", "pre_classifier.", "qa_outputs."};
};

/// What BERT, RoBERTa and MPNet know about the keys of such a config.json.
KnownKeys bert_keys();

/// Reads a config.json that spells its fields as BertConfig does. Adds to `wrong` what no encoder here has.
/// Throws FormatError that starts with `name`.
BertSizes read_bert_sizes(const BertSizes& defaults, std::string_view json, std::string_view name,
                          std::vector<std::string>& wrong);

/// Returns the plan of a model that has the pooler and the head for masked words of `config`, and a layer of `labels`, if the files
/// do. `tied`: the head's output is the table of embeddings. Throws FormatError that starts with `name` and lists what is wrong, `wrong`
/// first.
FolderPlan encoder_plan(const EncoderConfig& config, bool tied, const std::optional<Labels>& labels,
                        const BertNames& names, std::string_view name, std::vector<std::string> wrong);

/// The head for masked words of RobertaForMaskedLM and MPNetForMaskedLM.
inline constexpr std::array kLmHeadModules = {
    ModuleName{"cls.predictions.transform.dense", "lm_head.dense"},
    ModuleName{"cls.predictions.transform.LayerNorm", "lm_head.layer_norm"},
    ModuleName{"cls.predictions", "lm_head"},
};
/// The layer of labels of RobertaForSequenceClassification and MPNetForSequenceClassification; that of tokens is "classifier" itself.
inline constexpr ModuleName kTextLabelModule = {"classifier", "classifier.out_proj"};
/// Numbers of positions.
inline constexpr std::array<std::string_view, 1> kLmHeadOthers = {"embeddings.position_ids"};
inline constexpr std::array kLmHeadTwins = {
    TensorTwin{"lm_head.decoder.weight", "embeddings.word_embeddings.weight"},
    TensorTwin{"lm_head.decoder.bias", "lm_head.bias"},
};

}  // namespace mh

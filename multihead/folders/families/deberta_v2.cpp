// DeBERTa-v2 and -v3 (He et al. 2021, 2023; Hugging Face's DebertaV2Model, DebertaV2ForMaskedLM): BERT whose scores also
// have the products of queries and keys with vectors of distances (Positions::kDisentangled). Its classifier of texts reads the
// first state through a layer that the files call a pooler.
#include "multihead/folders/families/bert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/io/config.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

/// LabelDense has no other name for tanh than that of no activation.
constexpr EnumNames<Activation> kPoolerActivations = {
    {"gelu", Activation::kGelu},         {"tanh", Activation::kNone},   {"relu", Activation::kRelu},
    {"gelu_new", Activation::kGeluTanh}, {"swish", Activation::kSwish}, {"silu", Activation::kSwish}};

enum class Product { kContentToPosition, kPositionToContent };
constexpr EnumNames<Product> kProducts = {{"c2p", Product::kContentToPosition},
                                          {"p2c", Product::kPositionToContent}};

/// What DebertaV2Config has beside BertConfig's fields.
struct DebertaFields {
  bool relative = false, positions_added = true, shared_projections = false, legacy = true;
  int32_t most_relative = -1;  // below 1: max_position_embeddings
  int32_t buckets = -1;        // below 1: none
  std::vector<Product> products = {};
  std::string norm = "none";
  Activation pooler_activation = Activation::kGelu;
  std::optional<int32_t> pooler_size = {}, embedding_size = {}, head_size = {}, convolution = {};

  template <class V>
  void visit(V& v) {
    v("relative_attention", relative);
    v("max_relative_positions", most_relative, {.low = -1, .high = 1 << 15});
    v("position_biased_input", positions_added);
    v("pos_att_type", products, kProducts);
    v("share_att_key", shared_projections);
    v("position_buckets", buckets, {.low = -1, .high = 1 << 15});
    v("norm_rel_ebd", norm);
    v("legacy", legacy);
    v("pooler_hidden_act", pooler_activation, kPoolerActivations);
    v("pooler_hidden_size", pooler_size, {.low = 1, .high = 1 << 16});
    v("embedding_size", embedding_size, {.low = 1, .high = 1 << 16});
    v("attention_head_size", head_size, {.low = 1, .high = 1 << 16});
    v("conv_kernel_size", convolution, {.low = 0, .high = 1 << 16});
  }

  bool has(Product product) const {
    return std::find(products.begin(), products.end(), product) != products.end();
  }
};

/// pos_att_type "p2c|C2P" as ["p2c", "c2p"], which later files have.
std::string with_list_of_products(std::string_view json, std::string_view name) {
  constexpr const char* kKey = "pos_att_type";
  auto config = parse_json_strictly(json, name);
  if (!config.is_object() || !config.contains(kKey) || !(config[kKey].is_string() || config[kKey].is_null()))
    return std::string(json);
  const std::string text = config[kKey].is_null() ? "" : config[kKey].get<std::string>();
  nlohmann::json list = nlohmann::json::array();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('|', begin), text.size());
    std::string product;
    for (const char c : text.substr(begin, end - begin)) {
      if (c != ' ') product += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    if (!product.empty()) list.push_back(product);
    begin = end + 1;
  }
  config[kKey] = std::move(list);
  return config.dump();
}

constexpr std::array kDebertaModules = {
    ModuleName{"encoder.layer.#.attention.self.query", "encoder.layer.#.attention.self.query_proj"},
    ModuleName{"encoder.layer.#.attention.self.key", "encoder.layer.#.attention.self.key_proj"},
    ModuleName{"encoder.layer.#.attention.self.value", "encoder.layer.#.attention.self.value_proj"},
    ModuleName{"classifier.dense", "pooler.dense"},
    ModuleName{"cls.predictions.transform.dense", "lm_predictions.lm_head.dense"},  // not of legacy heads
    ModuleName{"cls.predictions.transform.LayerNorm", "lm_predictions.lm_head.LayerNorm"},
    ModuleName{"cls.predictions", "lm_predictions.lm_head"},
};
constexpr size_t kLegacyModules = 4;

// The second is there though it is not read where position_biased_input is false.
constexpr std::array<std::string_view, 2> kDebertaOthers = {"embeddings.position_ids",
                                                            "embeddings.position_embeddings.weight"};
constexpr std::array kDebertaTwins = {
    TensorTwin{"cls.predictions.decoder.weight", "embeddings.word_embeddings.weight"},
    TensorTwin{"cls.predictions.decoder.bias", "cls.predictions.bias"},
};

KnownKeys deberta_keys() {
  KnownKeys keys = bert_keys();
  keys.add(
      {.obeyed = keys_of(DebertaFields()),
       .rules = {
           {.key = "pooler_dropout"}, {.key = "cls_dropout"}, {.key = "conv_act"}, {.key = "conv_groups"}}});
  return keys;
}

FolderPlan read_deberta(std::string_view given, std::string_view name) {
  std::vector<std::string> wrong;
  const std::string json = with_list_of_products(given, name);
  const BertSizes sizes = read_bert_sizes({.vocabulary = 128100,
                                           .d_model = 1536,
                                           .layers = 24,
                                           .heads = 24,
                                           .d_ff = 6144,
                                           .types = 0,
                                           .least_types = 0,
                                           .epsilon = 1e-7f},
                                          json, name, wrong);
  DebertaFields fields;
  from_json(fields, json, name, UnknownKeys::kIgnore);
  const auto check_size = [&](const char* key, std::optional<int32_t> size, int32_t expected) {
    if (size.value_or(expected) != expected)
      wrong.push_back(fmt::format("{} is {}; expected {}", key, *size, expected));
  };
  check_size("pooler_hidden_size", fields.pooler_size, sizes.d_model);
  check_size("embedding_size", fields.embedding_size, sizes.d_model);
  if (sizes.d_model % sizes.heads == 0)
    check_size("attention_head_size", fields.head_size, sizes.d_model / sizes.heads);
  if (fields.convolution.value_or(0) != 0)
    wrong.push_back(fmt::format("conv_kernel_size is {}; expected 0, a model without a convolution",
                                *fields.convolution));

  EncoderConfig config = bert_config(sizes);
  config.positions = fields.positions_added ? Positions::kLearned : Positions::kNone;
  const bool to_position = fields.has(Product::kContentToPosition),
             to_content = fields.has(Product::kPositionToContent);
  if (fields.relative) {
    const int32_t farthest = fields.most_relative < 1 ? sizes.positions : fields.most_relative;
    config.stack.positions = Positions::kDisentangled;
    config.stack.disentangled = {.content_to_position = to_position,
                                 .position_to_content = to_content,
                                 .shared_projections = fields.shared_projections,
                                 .span = fields.buckets > 0 ? fields.buckets : farthest,
                                 .farthest = fields.buckets > 0 ? farthest : 0,
                                 .normed = fields.norm.find("layer_norm") != std::string::npos};
  }
  // The scale of three products that add up, whether or not there are vectors of distances.
  const int products = 1 + (to_position ? 1 : 0) + (to_content ? 1 : 0);
  const int summed = sizes.d_model / sizes.heads * products;
  for (LayerConfig& layer : config.stack.layers) {
    if (products > 1 && sizes.d_model % sizes.heads == 0)
      layer.self_attention.scale = 1 / std::sqrt(static_cast<float>(summed));
  }
  LabelDense pooler;
  if (fields.pooler_activation != Activation::kNone) pooler.activation = fields.pooler_activation;
  const std::span<const ModuleName> modules(kDebertaModules);
  const std::span<const std::string_view> others(kDebertaOthers);
  std::vector<std::string> other_heads = {"classifier.", "pooler.", "qa_outputs.", "mask_predictions."};
  other_heads.emplace_back(fields.legacy ? "lm_predictions." : "cls.");
  return encoder_plan(config, sizes.tied, read_labels(json, name),
                      {.model_type = "deberta-v2",
                       .prefix = "deberta.",
                       .modules = fields.legacy ? modules.first(kLegacyModules) : modules,
                       .masked_words = fields.legacy ? "cls.predictions.bias" : "lm_predictions.lm_head.bias",
                       .no_weights = fields.positions_added ? others.first(1) : others,
                       .twins = kDebertaTwins,
                       .prunes_heads = false,
                       .text_labels = {.rows = LabelRows::kFirst, .dense = pooler},
                       .other_heads = other_heads},
                      name, wrong);
}

constexpr OracleAttention kDebertaAttention[] = {{.module = "attention.self",
                                                  .queries = "attention.self.query_proj",
                                                  .keys = "attention.self.key_proj",
                                                  .output = "attention.output.dense",
                                                  .sum_norm = "attention.output.LayerNorm",
                                                  .own_function = "deberta"}};
constexpr OracleStack kDebertaStack[] = {{.name = "encoder",
                                          .layers = "encoder.layer",
                                          .attentions = kDebertaAttention,
                                          .second_linear = "output.dense"}};
constexpr OracleModules kDebertaOracle = {.stacks = kDebertaStack};

}  // namespace

extern const Family kDebertaV2Family;
const Family kDebertaV2Family = {
    "deberta-v2", "an encoder of DebertaV2Model", read_deberta, deberta_keys, {}, &kDebertaOracle};

}  // namespace mh

// BERT (Devlin et al. 2019; Hugging Face's BertModel, BertForMaskedLM, BertForPreTraining): an encoder with norms behind
// its layers and one after the embeddings, learned positions and kinds of token. Whether there are a pooler and a head
// for masked words the files say. Older files call a norm's gain and bias gamma and beta.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/io/config.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/families/family.h"
#include "multihead/models/families/names.h"
#include "multihead/models/vocabulary_head.h"

namespace mh {
namespace {

/// Where a key may be missing, the start value is BertConfig's default.
struct BertFields {
  int32_t vocabulary = 30522, positions = 512, d_model = 768, layers = 12, heads = 12, d_ff = 3072, types = 2;
  Activation activation = Activation::kGelu;
  float epsilon = 1e-12f, dropout = 0.1f, attention_dropout = 0.1f;
  std::string position_kind = "absolute";
  bool is_decoder = false;
  std::optional<int32_t> pad = 0;

  template <class V>
  void visit(V& v) {
    v("vocab_size", vocabulary, {.low = 2, .high = 1 << 24});
    v("max_position_embeddings", positions, {.low = 1, .high = 1 << 20});
    v("hidden_size", d_model, {.low = 1, .high = 1 << 16});
    v("num_hidden_layers", layers, {.low = 1, .high = 1024});
    v("num_attention_heads", heads, {.low = 1, .high = 1024});
    v("intermediate_size", d_ff, {.low = 1, .high = 1 << 20});
    v("type_vocab_size", types, {.low = 1, .high = 1024});
    v("hidden_act", activation, kHuggingFaceActivations);
    v("layer_norm_eps", epsilon, {.low = 1e-30f, .high = 1});
    v("hidden_dropout_prob", dropout, {.low = 0, .high = 0.999f});
    v("attention_probs_dropout_prob", attention_dropout, {.low = 0, .high = 0.999f});
    v("position_embedding_type", position_kind);
    v("is_decoder", is_decoder);
    v("pad_token_id", pad);
  }
};

EncoderConfig bert_config(const BertFields& f) {
  const NormConfig norm{.epsilon = f.epsilon};
  EncoderConfig config{.embedding = {.vocabulary = f.vocabulary,
                                     .d_model = f.d_model,
                                     .scaled = false,
                                     .token_types = f.types,
                                     .norm = norm},
                       .max_positions = f.positions,
                       .stack = {.name = "encoder",
                                 .d_model = f.d_model,
                                 .norm = norm,
                                 .dropout = {.residual = f.dropout, .weights = f.attention_dropout}},
                       .pad_id = f.pad.value_or(-1)};
  config.stack.layers.assign(
      static_cast<size_t>(f.layers),
      {.self_attention = {.heads = f.heads}, .feed_forward = {.d_ff = f.d_ff, .activation = f.activation}});
  return config;
}

constexpr TensorPlace::Layout kTurned = TensorPlace::Layout::kTransposed, kRow = TensorPlace::Layout::kVector;

constexpr std::array kBertNames = {
    TensorName{"embedding", "embeddings.word_embeddings.weight"},
    TensorName{"embedding.types", "embeddings.token_type_embeddings.weight"},
    TensorName{"embedding.norm.gain", "embeddings.LayerNorm.weight", kRow},
    TensorName{"embedding.norm.bias", "embeddings.LayerNorm.bias", kRow},
    TensorName{"positions", "embeddings.position_embeddings.weight"},
    TensorName{"encoder.#.self_attention.w_q", "encoder.layer.#.attention.self.query.weight", kTurned},
    TensorName{"encoder.#.self_attention.b_q", "encoder.layer.#.attention.self.query.bias", kRow},
    TensorName{"encoder.#.self_attention.w_k", "encoder.layer.#.attention.self.key.weight", kTurned},
    TensorName{"encoder.#.self_attention.b_k", "encoder.layer.#.attention.self.key.bias", kRow},
    TensorName{"encoder.#.self_attention.w_v", "encoder.layer.#.attention.self.value.weight", kTurned},
    TensorName{"encoder.#.self_attention.b_v", "encoder.layer.#.attention.self.value.bias", kRow},
    TensorName{"encoder.#.self_attention.w_o", "encoder.layer.#.attention.output.dense.weight", kTurned},
    TensorName{"encoder.#.self_attention.b_o", "encoder.layer.#.attention.output.dense.bias", kRow},
    TensorName{"encoder.#.self_attention_norm.gain", "encoder.layer.#.attention.output.LayerNorm.weight",
               kRow},
    TensorName{"encoder.#.self_attention_norm.bias", "encoder.layer.#.attention.output.LayerNorm.bias", kRow},
    TensorName{"encoder.#.feed_forward.w_1", "encoder.layer.#.intermediate.dense.weight", kTurned},
    TensorName{"encoder.#.feed_forward.b_1", "encoder.layer.#.intermediate.dense.bias", kRow},
    TensorName{"encoder.#.feed_forward.w_2", "encoder.layer.#.output.dense.weight", kTurned},
    TensorName{"encoder.#.feed_forward.b_2", "encoder.layer.#.output.dense.bias", kRow},
    TensorName{"encoder.#.feed_forward_norm.gain", "encoder.layer.#.output.LayerNorm.weight", kRow},
    TensorName{"encoder.#.feed_forward_norm.bias", "encoder.layer.#.output.LayerNorm.bias", kRow},
    TensorName{"pooler.w", "pooler.dense.weight", kTurned},
    TensorName{"pooler.b", "pooler.dense.bias", kRow},
    TensorName{"masked_words.w", "cls.predictions.transform.dense.weight", kTurned},
    TensorName{"masked_words.b", "cls.predictions.transform.dense.bias", kRow},
    TensorName{"masked_words.norm.gain", "cls.predictions.transform.LayerNorm.weight", kRow},
    TensorName{"masked_words.norm.bias", "cls.predictions.transform.LayerNorm.bias", kRow},
    TensorName{"masked_words.output_bias", "cls.predictions.bias", kRow},
};

TensorPlace bert_place(std::string_view parameter) {
  TensorPlace place = place_in(kBertNames, parameter);
  // LayerNorm.weight was once LayerNorm.gamma, and LayerNorm.bias LayerNorm.beta.
  for (const auto& [now, once] :
       {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}) {
    const std::string name = place.names.front();
    if (!name.ends_with(now)) continue;
    place.names.push_back(name.substr(0, name.size() - std::string_view(now).size()) + once);
  }
  return place;
}

FolderPlan read_bert(std::string_view json, std::string_view name) {
  BertFields fields;
  from_json(fields, json, name, UnknownKeys::kIgnore);
  std::vector<std::string> wrong;
  if (fields.is_decoder) wrong.emplace_back("is_decoder is true; expected an encoder");
  if (fields.position_kind != "absolute")
    wrong.push_back(
        fmt::format("position_embedding_type is \"{}\"; expected \"absolute\"", fields.position_kind));
  const EncoderConfig config = bert_config(fields);
  for (std::string& problem : problems_of(config)) wrong.push_back(std::move(problem));
  if (!wrong.empty()) throw FormatError(fmt::format("{}: {}", name, fmt::join(wrong, "; ")));
  return {.model_type = "bert",
          .least_parameters = least_parameters(config),
          .make =
              [config](const WeightFiles& files) {
                EncoderConfig all = config;
                const auto has = [&](const char* tensor) {
                  return files.contains(tensor) || files.contains(std::string("bert.") + tensor);
                };
                all.pooler = has("pooler.dense.weight");
                if (has("cls.predictions.bias"))
                  all.masked_words = config.stack.layers.front().feed_forward.activation;
                return std::make_unique<EncoderModel>(all);
              },
          .place = bert_place,
          .prefixes = {"bert.", ""},
          .no_weight =
              [](const std::string& tensor, const WeightFiles&, const Model&, Differences&) {
                // Numbers of positions, the tied output, and the head that says whether a sentence follows.
                constexpr std::array kOthers = {"embeddings.position_ids", "cls.predictions.decoder.weight",
                                                "cls.predictions.decoder.bias", "cls.seq_relationship.weight",
                                                "cls.seq_relationship.bias"};
                return std::find(kOthers.begin(), kOthers.end(), tensor) != kOthers.end();
              }};
}

}  // namespace

extern const Family kBertFamily;
const Family kBertFamily = {"bert", "an encoder of BertModel", read_bert};

}  // namespace mh

// T5 (Raffel et al. 2020; Hugging Face's T5ForConditionalGeneration), mT5 (Xue et al. 2021) and umT5 (Chung et al. 2023):
// encoder-decoders with RMS norms of what sublayers read, without biases, and with scores that have no scale and a bias for
// each head and bucket of distances. T5 and mT5 have one table of these for all layers of a side, umT5 one for each layer. Files
// without a decoder are an encoder (T5EncoderModel, T5ForTokenClassification).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/family_names.h"
#include "multihead/folders/known_keys.h"
#include "multihead/folders/labels.h"
#include "multihead/folders/oracle_modules.h"
#include "multihead/io/config.h"
#include "multihead/models/config_names.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/label_head.h"
#include "multihead/models/translator_shape.h"

namespace mh {
namespace {

/// In what the configuration classes differ.
struct T5Kind {
  std::string_view model_type;
  int32_t vocabulary, d_ff, layers, heads;  // where a file does not say
  const char* feed_forward;
  bool one_bias;
  bool scales_states;  // unless the file says otherwise; no: whatever it says
};
constexpr T5Kind kT5 = {"t5", 32128, 2048, 6, 8, "relu", true, true};
constexpr T5Kind kMt5 = {"mt5", 250112, 1024, 8, 6, "gated-gelu", true, false};
constexpr T5Kind kUmt5 = {"umt5", 250112, 1024, 8, 6, "gated-gelu", false, true};

struct T5Fields {
  explicit T5Fields(const T5Kind& of)
      : kind(&of), layers(of.layers), heads(of.heads), feed_forward(of.feed_forward) {
    shape.vocabulary_size = of.vocabulary;
    shape.encoder_ff = of.d_ff;
  }

  const T5Kind* kind;
  // Both sides have the same heads and feed-forward layers, those of the encoder here.
  TranslatorShape shape = {.geometry = {.biases = Biases::kNone, .scale = 1.0f},
                           .positions = Positions::kT5,
                           .feed_forward_bias = false,
                           .norm = NormPlacement::kPre,
                           .norm_kind = NormKind::kRms,
                           .norm_epsilon = 1e-6f,
                           .max_positions = 512,
                           .output_bias = false,
                           .scale_embedding = false,
                           .eos_id = 1};
  int32_t layers, heads, d_kv = 64;
  std::optional<int32_t> decoder_layers = {}, decoder_start = {};
  float dropout = 0.1f;
  std::string feed_forward;
  std::optional<Activation> activation = {};  // these count before feed_forward
  std::optional<bool> gated = {};
  std::optional<bool> tied = {}, scaled = {};
  bool two_stacks = true;  // no: an encoder alone

  template <class V>
  void visit(V& v) {
    constexpr Rule<int32_t> kWidth{.low = 1, .high = 1 << 16}, kLayers{.low = 1, .high = 1024};
    constexpr int32_t kMostBuckets = 1 << 12;
    v("vocab_size", shape.vocabulary_size, {.low = 2, .high = 1 << 24});
    v("d_model", shape.d_model, kWidth);
    v("d_kv", d_kv, {.low = 1, .high = kLargestHead});
    v("d_ff", shape.encoder_ff, {.low = 1, .high = 1 << 20});
    v("num_layers", layers, kLayers);
    v("num_decoder_layers", decoder_layers, kLayers);
    v("num_heads", heads, kWidth);
    v("relative_attention_num_buckets", shape.buckets.count, {.low = 4, .high = kMostBuckets});
    v("relative_attention_max_distance", shape.buckets.farthest, {.low = 1, .high = kMostBuckets});
    v("dropout_rate", dropout);
    v("layer_norm_epsilon", shape.norm_epsilon);
    v("feed_forward_proj", feed_forward);
    v("dense_act_fn", activation, kHuggingFaceActivations);
    v("is_gated_act", gated);
    if (kind->scales_states) {
      v("tie_word_embeddings", tied);
      v("scale_decoder_outputs", scaled);
    }
    v("pad_token_id", shape.pad_id, {.low = 0, .high = kTokenIds.high});
    v("eos_token_id", shape.eos_id, {.low = 0, .high = kTokenIds.high});
    v("decoder_start_token_id", decoder_start, {.low = 0, .high = kTokenIds.high});
    v("is_encoder_decoder", two_stacks);
    v("n_positions", shape.max_positions, {.low = 1, .high = 1 << 20});
  }
};

constexpr ConfigNames kT5Names = {.vocabulary = "vocab_size",
                                  .encoder_heads = "num_heads",
                                  .decoder_heads = "num_heads",
                                  .encoder_ff = "d_ff",
                                  .decoder_ff = "d_ff",
                                  .max_positions = "n_positions",
                                  .pad_id = "pad_token_id",
                                  .eos_id = "eos_token_id",
                                  .start_id = "decoder_start_token_id"};

/// Reads "relu", "gated-silu": the feed-forward layers.
void put_t5_feed_forward(const T5Fields& fields, TranslatorShape& shape, std::vector<std::string>& wrong) {
  constexpr std::string_view kGated = "gated-";
  std::string_view name = fields.feed_forward;
  shape.gated = name.starts_with(kGated);
  if (shape.gated) name.remove_prefix(kGated.size());
  if (shape.gated && name == "gelu") name = "gelu_new";  // as T5 1.1 computes it
  const auto named = value_named(name, kHuggingFaceActivations);
  if (!named && !fields.activation) {
    wrong.push_back(fmt::format("feed_forward_proj is \"{}\"; expected one of {}, or one behind \"{}\"",
                                fields.feed_forward, names_listed(kHuggingFaceActivations, ", "), kGated));
  }
  shape.activation = fields.activation.value_or(named.value_or(shape.activation));
  shape.gated = fields.gated.value_or(shape.gated);
}

TranslatorShape t5_shape(const T5Fields& fields, std::string_view name) {
  std::vector<std::string> wrong;
  TranslatorShape shape = fields.shape;
  shape.encoder_layers = fields.layers;
  shape.decoder_layers = fields.decoder_layers.value_or(fields.layers);
  shape.encoder_heads = shape.decoder_heads = fields.heads;
  shape.decoder_ff = shape.encoder_ff;
  shape.geometry.d_key = fields.d_kv;
  shape.one_bias = fields.kind->one_bias;
  shape.dropout = {.residual = fields.dropout, .weights = fields.dropout, .activation = fields.dropout};
  shape.decoder_start_id = fields.decoder_start.value_or(shape.pad_id);
  // Tied models of the first version scale; config.json of transformers 5 says all are tied, and scaling by its own key.
  shape.scale_states = fields.kind->scales_states && fields.scaled.value_or(fields.tied.value_or(true));
  put_t5_feed_forward(fields, shape, wrong);
  if (shape.buckets.farthest <= shape.buckets.count / 2) {
    wrong.push_back(
        fmt::format("relative_attention_max_distance is {}; expected more than half of "
                    "relative_attention_num_buckets, {}",
                    shape.buckets.farthest, shape.buckets.count));
  }
  if (wrong.empty()) wrong = problems_of(shape, kT5Names);
  if (!wrong.empty()) throw FormatError(fmt::format("{}: {}", name, fmt::join(wrong, "; ")));
  return shape;
}

constexpr auto kT5Matrix = TensorPlace::Layout::kTransposed, kT5Row = TensorPlace::Layout::kVector;

constexpr std::array kT5Tensors = {
    TensorName{"encoder.#.self_attention.w_q", "encoder.block.#.layer.0.SelfAttention.q.weight", kT5Matrix},
    TensorName{"encoder.#.self_attention.w_k", "encoder.block.#.layer.0.SelfAttention.k.weight", kT5Matrix},
    TensorName{"encoder.#.self_attention.w_v", "encoder.block.#.layer.0.SelfAttention.v.weight", kT5Matrix},
    TensorName{"encoder.#.self_attention.w_o", "encoder.block.#.layer.0.SelfAttention.o.weight", kT5Matrix},
    TensorName{"encoder.#.self_attention.distance_bias",
               "encoder.block.#.layer.0.SelfAttention.relative_attention_bias.weight", kT5Matrix},
    TensorName{"encoder.#.self_attention_norm.gain", "encoder.block.#.layer.0.layer_norm.weight", kT5Row},
    TensorName{"encoder.#.feed_forward.w_gate", "encoder.block.#.layer.1.DenseReluDense.wi_0.weight",
               kT5Matrix},
    TensorName{"encoder.#.feed_forward.w_1", "encoder.block.#.layer.1.DenseReluDense.wi_1.weight", kT5Matrix},
    TensorName{"encoder.#.feed_forward.w_2", "encoder.block.#.layer.1.DenseReluDense.wo.weight", kT5Matrix},
    TensorName{"encoder.#.feed_forward_norm.gain", "encoder.block.#.layer.1.layer_norm.weight", kT5Row},
    TensorName{"encoder.final_norm.gain", "encoder.final_layer_norm.weight", kT5Row},
    TensorName{"decoder.#.self_attention.w_q", "decoder.block.#.layer.0.SelfAttention.q.weight", kT5Matrix},
    TensorName{"decoder.#.self_attention.w_k", "decoder.block.#.layer.0.SelfAttention.k.weight", kT5Matrix},
    TensorName{"decoder.#.self_attention.w_v", "decoder.block.#.layer.0.SelfAttention.v.weight", kT5Matrix},
    TensorName{"decoder.#.self_attention.w_o", "decoder.block.#.layer.0.SelfAttention.o.weight", kT5Matrix},
    TensorName{"decoder.#.self_attention.distance_bias",
               "decoder.block.#.layer.0.SelfAttention.relative_attention_bias.weight", kT5Matrix},
    TensorName{"decoder.#.self_attention_norm.gain", "decoder.block.#.layer.0.layer_norm.weight", kT5Row},
    TensorName{"decoder.#.cross_attention.w_q", "decoder.block.#.layer.1.EncDecAttention.q.weight",
               kT5Matrix},
    TensorName{"decoder.#.cross_attention.w_k", "decoder.block.#.layer.1.EncDecAttention.k.weight",
               kT5Matrix},
    TensorName{"decoder.#.cross_attention.w_v", "decoder.block.#.layer.1.EncDecAttention.v.weight",
               kT5Matrix},
    TensorName{"decoder.#.cross_attention.w_o", "decoder.block.#.layer.1.EncDecAttention.o.weight",
               kT5Matrix},
    TensorName{"decoder.#.cross_attention_norm.gain", "decoder.block.#.layer.1.layer_norm.weight", kT5Row},
    TensorName{"decoder.#.feed_forward.w_gate", "decoder.block.#.layer.2.DenseReluDense.wi_0.weight",
               kT5Matrix},
    TensorName{"decoder.#.feed_forward.w_1", "decoder.block.#.layer.2.DenseReluDense.wi_1.weight", kT5Matrix},
    TensorName{"decoder.#.feed_forward.w_2", "decoder.block.#.layer.2.DenseReluDense.wo.weight", kT5Matrix},
    TensorName{"decoder.#.feed_forward_norm.gain", "decoder.block.#.layer.2.layer_norm.weight", kT5Row},
    TensorName{"decoder.final_norm.gain", "decoder.final_layer_norm.weight", kT5Row},
};
/// What the one matrix of a layer without a gate is called.
constexpr std::array kT5WithoutGate = {
    ModuleName{"encoder.block.#.layer.1.DenseReluDense.wi_1", "encoder.block.#.layer.1.DenseReluDense.wi"},
    ModuleName{"decoder.block.#.layer.2.DenseReluDense.wi_1", "decoder.block.#.layer.2.DenseReluDense.wi"}};

constexpr const char* kT5Output = "lm_head.weight";
/// One table of embeddings under several names, and perhaps the output layer.
constexpr std::array kT5Embeddings = {"shared.weight", "encoder.embed_tokens.weight",
                                      "decoder.embed_tokens.weight", kT5Output};

/// The layer of labels of tokens.
constexpr const char *kT5Labels = "classifier.weight", *kT5LabelBias = "classifier.bias";

/// of_texts: whether the labels are a text's.
TensorPlace t5_place(std::string_view parameter, bool gated, bool of_texts) {
  if (of_texts && parameter.starts_with("labels.")) return text_label_place(parameter);
  if (parameter == "labels.w") return {.names = {kT5Labels}, .layout = kT5Matrix};
  if (parameter == "labels.b") return {.names = {kT5LabelBias}, .layout = kT5Row};
  if (parameter == "embedding") return {.names = {kT5Embeddings.begin(), kT5Embeddings.end()}};
  if (parameter == "output") return {.names = {kT5Output}};
  return place_in(kT5Tensors, parameter,
                  gated ? std::span<const ModuleName>() : std::span<const ModuleName>(kT5WithoutGate));
}

/// The table repeated, or a bias of cross-attention, which older files have and no class reads.
bool is_no_weight_of_t5(const std::string& tensor, const TensorFiles& files, Differences& differences) {
  if (tensor.ends_with("EncDecAttention.relative_attention_bias.weight")) return true;
  if (std::find(kT5Embeddings.begin(), kT5Embeddings.end(), tensor) == kT5Embeddings.end()) return false;
  const auto* const read = std::find_if(kT5Embeddings.begin(), kT5Embeddings.end(),
                                        [&](const char* n) { return files.contains(n); });
  if (read != kT5Embeddings.end() && files.contains(tensor) && !files.same(tensor, *read)) {
    differences.other(
        fmt::format("{} is not {}; expected one table of embeddings for both sides", tensor, *read));
  }
  return true;
}

std::map<std::string, int32_t> t5_heads(const HeadGeometry& heads, int32_t) {
  if (heads.key_heads != heads.heads || heads.value_heads != heads.heads)
    throw UsageError("it gives each head its own keys and values");
  if (heads.d_value != heads.d_key) {
    throw UsageError(fmt::format("its keys and values have d_kv numbers; these have {} and {}", heads.d_key,
                                 heads.d_value));
  }
  return {{"num_heads", heads.heads}, {"d_kv", heads.d_key}};
}

/// Whether there are layers of an encoder and none of a decoder.
bool is_encoder_alone(const TensorFiles& files) {
  const auto& tensors = files.tensors();
  const auto has = [&](std::string_view part) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const auto& tensor) { return tensor.first.find(part) != std::string::npos; });
  };
  return has("encoder.block.") && !has("decoder.block.");
}

std::unique_ptr<Model> make_t5_encoder(const EncoderDecoderConfig& both, const std::optional<Labels>& labels,
                                       const TensorFiles& files) {
  EncoderConfig config{.embedding = both.embedding,
                       .positions = both.encoder.positions,
                       .max_positions = both.max_positions,
                       .stack = both.encoder,
                       .pad_id = both.pad_id};
  if (labels && labels->of == LabelsOf::kTokens && files.contains(kT5Labels))
    config.labels =
        LabelConfig{.labels = static_cast<int32_t>(labels->names.size()), .rows = LabelRows::kTokens};
  return std::make_unique<EncoderModel>(config);
}

FolderPlan read_t5_kind(const T5Kind& kind, std::string_view json, std::string_view name) {
  T5Fields fields(kind);
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  const TranslatorShape shape = t5_shape(fields, name);
  const std::optional<Labels> labels = read_labels(json, name);
  const bool of_texts = labels && labels->of == LabelsOf::kTexts;
  return {
      .model_type = std::string(kind.model_type),
      .least_parameters = least_parameters(shape.config()),
      .make = [shape, labels, of_texts, two = fields.two_stacks,
               file = std::string(name)](const TensorFiles& files) -> std::unique_ptr<Model> {
        if (is_encoder_alone(files)) return make_t5_encoder(shape.config(), labels, files);
        if (!two)
          throw FormatError(
              fmt::format("{}: is_encoder_decoder is false; expected an encoder-decoder", file));
        TranslatorShape all = shape;
        // Transformers ties what is alike in the file, whatever tie_word_embeddings says.
        all.own_output =
            has_own_output(files, kT5Output, {kT5Embeddings[0], kT5Embeddings[2], kT5Embeddings[1]});
        EncoderDecoderConfig config = all.config();
        if (of_texts && files.contains(text_label_place("labels.w").names.front()))
          become_classifier(config, static_cast<int32_t>(labels->names.size()));
        return std::make_unique<EncoderDecoder>(config);
      },
      .place = [gated = shape.gated,
                of_texts](std::string_view parameter) { return t5_place(parameter, gated, of_texts); },
      .prefixes = {"", "transformer."},
      .no_weight = [](const std::string& tensor, const TensorFiles& files, const Model&,
                      Differences& differences) { return is_no_weight_of_t5(tensor, files, differences); },
      .other_heads = {kTextLabelLayers, "classifier.", "qa_outputs."},
      .files_say_tied = true,
      .fields_of_heads = t5_heads,
      .field_of_longest = std::string(kT5Names.max_positions),
      .labels = labels};
}

FolderPlan read_t5(std::string_view json, std::string_view name) {
  return read_t5_kind(kT5, json, name);
}
FolderPlan read_mt5(std::string_view json, std::string_view name) {
  return read_t5_kind(kMt5, json, name);
}
FolderPlan read_umt5(std::string_view json, std::string_view name) {
  return read_t5_kind(kUmt5, json, name);
}

KnownKeys t5_kind_keys(const T5Kind& kind) {
  KnownKeys keys{.obeyed = keys_of(T5Fields(kind))};
  keys.rules = {{.key = "initializer_factor"},
                {.key = "is_decoder", .harmless = "[false]", .refused = "expected an encoder-decoder"},
                {.key = "is_encoder_decoder", .harmless = "[true, false]"}};  // false of an encoder alone
  if (!kind.scales_states) {  // mT5's outputs are as they are, and tied by what the file has
    keys.rules.push_back({.key = "tie_word_embeddings"});
    keys.rules.push_back({.key = "scale_decoder_outputs"});
  }
  return keys;
}
KnownKeys t5_keys() {
  return t5_kind_keys(kT5);
}
KnownKeys mt5_keys() {
  return t5_kind_keys(kMt5);
}
KnownKeys umt5_keys() {
  return t5_kind_keys(kUmt5);
}

constexpr KeyAlias kT5Aliases[] = {{"hidden_size", "d_model"},
                                   {"num_attention_heads", "num_heads"},
                                   {"num_hidden_layers", "num_layers"},
                                   {"head_dim", "d_kv"}};

constexpr OracleAttention kT5Attentions[] = {{.module = "layer.0.SelfAttention",
                                              .queries = "layer.0.SelfAttention.q",
                                              .keys = "layer.0.SelfAttention.k",
                                              .output = "layer.0.SelfAttention.o",
                                              .sum = "layer.0"},
                                             {.site = "cross_attention",
                                              .module = "layer.1.EncDecAttention",
                                              .queries = "layer.1.EncDecAttention.q",
                                              .keys = "layer.1.EncDecAttention.k",
                                              .output = "layer.1.EncDecAttention.o",
                                              .sum = "layer.1"}};
constexpr OracleStack kT5Stacks[] = {{.name = "encoder",
                                      .layers = "encoder.block",
                                      .states = "encoder.final_layer_norm",
                                      .attentions = std::span(kT5Attentions).first(1),
                                      .second_linear = "layer.1.DenseReluDense.wo"},
                                     {.name = "decoder",
                                      .layers = "decoder.block",
                                      .states = "decoder.final_layer_norm",
                                      .attentions = kT5Attentions,
                                      .second_linear = "layer.2.DenseReluDense.wo"}};
constexpr OracleModules kT5Oracle = {.stacks = kT5Stacks};

}  // namespace

extern const Family kT5Family;
const Family kT5Family = {"t5",       "an encoder-decoder of T5ForConditionalGeneration",
                          read_t5,    t5_keys,
                          kT5Aliases, &kT5Oracle,
                          nullptr,    FamilyTexts::kSourceAndTarget};
extern const Family kMt5Family;
const Family kMt5Family = {"mt5",      "an encoder-decoder of MT5ForConditionalGeneration",
                           read_mt5,   mt5_keys,
                           kT5Aliases, &kT5Oracle,
                           nullptr,    FamilyTexts::kSourceAndTarget};
extern const Family kUmt5Family;
const Family kUmt5Family = {"umt5",     "an encoder-decoder of UMT5ForConditionalGeneration",
                            read_umt5,  umt5_keys,
                            kT5Aliases, &kT5Oracle,
                            nullptr,    FamilyTexts::kSourceAndTarget};

}  // namespace mh

// BERT (Devlin et al. 2019; Hugging Face's BertModel, BertForMaskedLM, BertForPreTraining), and what its
// family shares. Older files call a norm's gain and bias gamma and beta.
#include "multihead/folders/families/bert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/io/config.h"
#include "multihead/models/config_checks.h"

namespace mh {
namespace {

/// A config.json of BertConfig or RobertaConfig.
struct BertFields {
  BertSizes sizes;
  std::string position_kind = "absolute";
  bool is_decoder = false;

  template <class V>
  void visit(V& v) {
    v("vocab_size", sizes.vocabulary, {.low = 2, .high = 1 << 24});
    v("max_position_embeddings", sizes.positions, {.low = 1, .high = 1 << 20});
    v("hidden_size", sizes.d_model, {.low = 1, .high = 1 << 16});
    v("num_hidden_layers", sizes.layers, {.low = 1, .high = 1024});
    v("num_attention_heads", sizes.heads, {.low = 1, .high = 1024});
    v("intermediate_size", sizes.d_ff, {.low = 1, .high = 1 << 20});
    v("type_vocab_size", sizes.types, {.low = sizes.least_types, .high = 1024});
    v("hidden_act", sizes.activation, kHuggingFaceActivations);
    v("layer_norm_eps", sizes.epsilon, {.low = 1e-30f, .high = 1});
    v("hidden_dropout_prob", sizes.dropout, {.low = 0, .high = 0.999f});
    v("attention_probs_dropout_prob", sizes.attention_dropout, {.low = 0, .high = 0.999f});
    v("tie_word_embeddings", sizes.tied);
    v("position_embedding_type", position_kind);
    v("is_decoder", is_decoder);
    v("pad_token_id", sizes.pad, kTokenIds);
  }
};

}  // namespace

EncoderConfig bert_config(const BertSizes& s) {
  const NormConfig norm{.epsilon = s.epsilon};
  EncoderConfig config{.embedding = {.vocabulary = s.vocabulary,
                                     .d_model = s.d_model,
                                     .scaled = false,
                                     .token_types = s.types,
                                     .norm = norm},
                       .max_positions = s.positions - s.position_offset,
                       .position_offset = s.position_offset,
                       .stack = {.name = "encoder",
                                 .d_model = s.d_model,
                                 .norm = norm,
                                 .dropout = {.residual = s.dropout, .weights = s.attention_dropout}},
                       .masked_words = MaskedWordsConfig{.activation = s.activation},
                       .pad_id = s.pad.value_or(-1)};
  config.stack.layers.assign(
      static_cast<size_t>(s.layers),
      {.self_attention = {.heads = s.heads}, .feed_forward = {.d_ff = s.d_ff, .activation = s.activation}});
  return config;
}

void BertSizes::put_position_offset(int32_t offset, std::vector<std::string>& wrong) {
  if (offset < positions) {
    position_offset = offset;
  } else {
    wrong.push_back(
        fmt::format("max_position_embeddings is {}; expected more than the {} rows before the first token's",
                    positions, offset));
  }
}

namespace {

TensorPlace bert_place(const BertNames& names, std::string_view parameter) {
  TensorPlace place = place_in(names.tensors, parameter, names.modules);
  // LayerNorm.weight was once LayerNorm.gamma, and LayerNorm.bias LayerNorm.beta.
  for (const auto& [now, once] :
       {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}) {
    const std::string name = place.names.front();
    if (!name.ends_with(now)) continue;
    place.names.push_back(name.substr(0, name.size() - std::string_view(now).size()) + once);
  }
  return place;
}

// Numbers of positions, and the head that says whether a sentence follows.
constexpr std::array<std::string_view, 3> kBertOthers = {
    "embeddings.position_ids", "cls.seq_relationship.weight", "cls.seq_relationship.bias"};
constexpr std::array kBertTwins = {
    TensorTwin{"cls.predictions.decoder.weight", "embeddings.word_embeddings.weight"},
    TensorTwin{"cls.predictions.decoder.bias", "cls.predictions.bias"},
};

/// A tensor's name in the files, with the first of the prefixes with which it is there; empty: it is not.
std::string name_in(const TensorFiles& files, const std::vector<std::string>& prefixes,
                    std::string_view tensor) {
  for (const std::string& prefix : prefixes) {
    if (std::string whole = prefix + std::string(tensor); files.contains(whole)) return whole;
  }
  return {};
}

/// Transformers does not tie what the files have twice with different numbers. Whether `tensor`, without prefix, is such a twin.
bool is_twin(std::span<const TensorTwin> twins, const std::string& tensor,
             const std::vector<std::string>& prefixes, const TensorFiles& files, Differences& differences) {
  const auto twin =
      std::find_if(twins.begin(), twins.end(), [&](const TensorTwin& one) { return one.tensor == tensor; });
  if (twin == twins.end()) return false;
  const std::string own = name_in(files, prefixes, twin->tensor), read = name_in(files, prefixes, twin->read);
  if (!read.empty() && !files.same(own, read)) {
    differences.other(fmt::format(
        "{} is not {}; expected a head for masked words that uses the table of embeddings", own, read));
  }
  return true;
}

FolderPlan read_bert(std::string_view json, std::string_view name) {
  std::vector<std::string> wrong;
  const BertSizes sizes = read_bert_sizes({}, json, name, wrong);
  return encoder_plan(bert_config(sizes), sizes.tied, read_labels(json, name),
                      {.model_type = "bert",
                       .prefix = "bert.",
                       .pooler = "pooler.dense.weight",
                       .masked_words = "cls.predictions.bias",
                       .no_weights = kBertOthers,
                       .twins = kBertTwins,
                       .text_labels = {.rows = LabelRows::kPooled}},
                      name, wrong);
}

}  // namespace

KnownKeys bert_keys() {
  return {.obeyed = keys_of(BertFields()),
          .rules = {{.key = "is_causal", .harmless = "[false]"},
                    {.key = "use_bidirectional_attention", .harmless = "[true]"}}};
}

BertSizes read_bert_sizes(const BertSizes& defaults, std::string_view json, std::string_view name,
                          std::vector<std::string>& wrong) {
  BertFields fields{.sizes = defaults};
  from_json(fields, json, name, UnknownKeys::kIgnore);
  if (fields.is_decoder) wrong.emplace_back("is_decoder is true; expected an encoder");
  if (fields.position_kind != "absolute")
    wrong.push_back(
        fmt::format("position_embedding_type is \"{}\"; expected \"absolute\"", fields.position_kind));
  return fields.sizes;
}

FolderPlan encoder_plan(const EncoderConfig& sizes, bool tied, const std::optional<Labels>& labels,
                        const BertNames& names, std::string_view name, std::vector<std::string> wrong) {
  EncoderConfig config = sizes;
  if (labels) {
    config.labels = labels->of == LabelsOf::kTexts ? names.text_labels : names.token_labels;
    config.labels->labels = static_cast<int32_t>(labels->names.size());
  }
  const int32_t heads = config.stack.layers.front().self_attention.heads;
  if (config.stack.d_model % heads != 0) {
    wrong.push_back(no_divisor(names.heads, heads, names.fields.d_model, config.stack.d_model));
  } else {
    for (std::string& problem : problems_of(sizes, names.fields)) wrong.push_back(std::move(problem));
  }
  if (!wrong.empty()) throw FormatError(fmt::format("{}: {}", name, fmt::join(wrong, "; ")));
  std::vector<std::string> prefixes = {std::string(names.prefix), ""};
  if (!names.prefix_before.empty()) prefixes.insert(prefixes.begin() + 1, std::string(names.prefix_before));
  return {
      .model_type = std::string(names.model_type),
      .least_parameters = least_parameters(config),
      .make =
          [config, tied, names, prefixes, file = std::string(name)](const TensorFiles& files) {
            const auto has = [&](std::string_view tensor) {
              return !tensor.empty() && !name_in(files, prefixes, tensor).empty();
            };
            EncoderConfig all = config;
            all.pooler = has(names.pooler);
            if (!has(bert_place(names, "labels.w").names.front())) all.labels.reset();
            if (!has(names.masked_words)) all.masked_words.reset();
            if (all.masked_words && !tied) {
              throw FormatError(
                  fmt::format("{}: tie_word_embeddings is false; expected that the head for masked words "
                              "uses the embeddings",
                              file));
            }
            return std::make_unique<EncoderModel>(all);
          },
      .place = [names](std::string_view parameter) { return bert_place(names, parameter); },
      .prefixes = prefixes,
      .no_weight =
          [others = names.no_weights, twins = names.twins, prefixes](
              const std::string& tensor, const TensorFiles& files, const Model&, Differences& differences) {
            return std::find(others.begin(), others.end(), tensor) != others.end() ||
                   is_twin(twins, tensor, prefixes, files, differences);
          },
      .other_heads = names.other_heads,
      .prunes_heads = names.prunes_heads,
      .fields_of_heads = [field = std::string(names.heads)](
                             const HeadGeometry& changed,
                             int32_t d_model) { return heads_that_divide(changed, d_model, field); },
      .labels = labels};
}

constexpr OracleAttention kBertAttention[] = {{.module = "attention.self",
                                               .queries = "attention.self.query",
                                               .keys = "attention.self.key",
                                               .output = "attention.output.dense",
                                               .sum_norm = "attention.output.LayerNorm"}};
constexpr OracleStack kBertStack[] = {{.name = "encoder",
                                       .layers = "encoder.layer",
                                       .attentions = kBertAttention,
                                       .second_linear = "output.dense"}};
extern const OracleModules kBertOracle;
const OracleModules kBertOracle = {.stacks = kBertStack, .pooler = "pooler"};

extern const Family kBertFamily;
const Family kBertFamily = {"bert", "an encoder of BertModel", read_bert, bert_keys, {}, &kBertOracle};

}  // namespace mh

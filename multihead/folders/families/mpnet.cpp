// MPNet (Song et al. 2020; Hugging Face's MPNetModel, MPNetForMaskedLM): RoBERTa whose layers add one bias to their scores,
// a number for each head and bucket of distances, as T5 does (Positions::kT5).
#include "multihead/folders/families/bert.h"

#include <fmt/format.h>

#include "multihead/io/config.h"

namespace mh {
namespace {

struct MpnetFields {
  int32_t buckets = T5Buckets().count;

  template <class V>
  void visit(V& v) {
    v("relative_attention_num_buckets", buckets, {.low = 1, .high = 1 << 20});
  }
};

constexpr std::array kMpnetModules = {
    ModuleName{"encoder.layer.#.attention.self.query", "encoder.layer.#.attention.attn.q"},
    ModuleName{"encoder.layer.#.attention.self.key", "encoder.layer.#.attention.attn.k"},
    ModuleName{"encoder.layer.#.attention.self.value", "encoder.layer.#.attention.attn.v"},
    ModuleName{"encoder.layer.#.attention.output.dense", "encoder.layer.#.attention.attn.o"},
    ModuleName{"encoder.layer.#.attention.output.LayerNorm", "encoder.layer.#.attention.LayerNorm"},
    kLmHeadModules[0],
    kLmHeadModules[1],
    kLmHeadModules[2],
    kTextLabelModule,
};

KnownKeys mpnet_keys() {
  KnownKeys keys = bert_keys();
  return keys.add({.obeyed = keys_of(MpnetFields())});
}

FolderPlan read_mpnet(std::string_view json, std::string_view name) {
  std::vector<std::string> wrong;
  BertSizes sizes = read_bert_sizes({.vocabulary = 30527, .pad = 1}, json, name, wrong);
  sizes.types = 0;
  constexpr int32_t kPadding = 1;  // whatever pad_token_id is
  sizes.put_position_offset(kPadding + 1, wrong);
  MpnetFields fields;
  from_json(fields, json, name, UnknownKeys::kIgnore);
  if (const int32_t expected = T5Buckets().count; fields.buckets != expected)
    wrong.push_back(
        fmt::format("relative_attention_num_buckets is {}; expected {}", fields.buckets, expected));
  EncoderConfig config = bert_config(sizes);
  config.embedding.uncounted = kPadding;
  config.stack.positions = Positions::kT5;
  config.stack.one_bias = true;
  config.masked_words = MaskedWordsConfig{.activation = Activation::kGelu};  // whatever hidden_act is
  const std::optional<Labels> labels = read_labels(json, name);
  const bool of_texts = labels && labels->of == LabelsOf::kTexts;
  return encoder_plan(
      config, sizes.tied, labels,
      {.model_type = "mpnet",
       .prefix = "mpnet.",
       .modules = of_texts ? std::span<const ModuleName>(kMpnetModules)
                           : std::span<const ModuleName>(kMpnetModules).first(kMpnetModules.size() - 1),
       .pooler = "pooler.dense.weight",
       .masked_words = "lm_head.bias",
       .no_weights = kLmHeadOthers,
       .twins = kLmHeadTwins,
       .prunes_heads = false,
       .text_labels = {.rows = LabelRows::kFirst, .dense = LabelDense()}},
      name, wrong);
}

}  // namespace

constexpr OracleAttention kMpnetAttention[] = {{.module = "attention.attn",
                                                .queries = "attention.attn.q",
                                                .keys = "attention.attn.k",
                                                .output = "attention.attn.o",
                                                .sum_norm = "attention.LayerNorm",
                                                .own_function = "mpnet"}};
constexpr OracleStack kMpnetStack[] = {{.name = "encoder",
                                        .layers = "encoder.layer",
                                        .attentions = kMpnetAttention,
                                        .second_linear = "output.dense"}};
constexpr OracleModules kMpnetOracle = {.stacks = kMpnetStack, .pooler = "pooler"};

extern const Family kMpnetFamily;
const Family kMpnetFamily = {"mpnet", "an encoder of MPNetModel", read_mpnet, mpnet_keys, {}, &kMpnetOracle};

}  // namespace mh

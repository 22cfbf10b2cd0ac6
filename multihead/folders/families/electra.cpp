// ELECTRA (Clark et al. 2020; Hugging Face's ElectraModel, ElectraForMaskedLM, ElectraForPreTraining): BERT without a pooler,
// whose embeddings may be of another width than its states. The generator predicts masked words with the table of embeddings, from
// states that became as wide; the discriminator says of each token whether it was replaced, which is a label of tokens.
#include "multihead/folders/families/bert.h"

#include <algorithm>

#include "multihead/io/config.h"

namespace mh {
namespace {

struct ElectraFields {
  int32_t d_embedding = 128;
  std::optional<std::vector<std::string>> architectures = {};

  bool is_discriminator() const {
    return architectures && !architectures->empty() && architectures->front() == "ElectraForPreTraining";
  }

  template <class V>
  void visit(V& v) {
    v("embedding_size", d_embedding, {.low = 1, .high = 1 << 16});
    v("architectures", architectures);
  }
};

constexpr std::array kElectraModules = {
    ModuleName{"cls.predictions.transform.dense", "generator_predictions.dense"},
    ModuleName{"cls.predictions.transform.LayerNorm", "generator_predictions.LayerNorm"},
    ModuleName{"cls.predictions", "generator_lm_head"},
    ModuleName{"classifier.dense", "discriminator_predictions.dense"},
    ModuleName{"classifier", "discriminator_predictions.dense_prediction"},
};
/// A classifier of texts has other names in the place of the discriminator's.
constexpr std::array kElectraTextModules = {kElectraModules[0], kElectraModules[1], kElectraModules[2],
                                            kTextLabelModule};
constexpr std::array<std::string_view, 1> kElectraOthers = {"embeddings.position_ids"};
constexpr std::array kElectraTwins = {
    TensorTwin{"generator_lm_head.weight", "embeddings.word_embeddings.weight"}};

KnownKeys electra_keys() {
  KnownKeys keys = bert_keys();
  return keys.add(
      {.obeyed = keys_of(ElectraFields()), .rules = {{.key = "summary_*"}}});  // of multiple choice
}

FolderPlan read_electra(std::string_view json, std::string_view name) {
  std::vector<std::string> wrong;
  const BertSizes sizes = read_bert_sizes({.d_model = 256, .heads = 4, .d_ff = 1024}, json, name, wrong);
  ElectraFields fields;
  from_json(fields, json, name, UnknownKeys::kIgnore);
  EncoderConfig config = bert_config(sizes);
  config.embedding.d_model = fields.d_embedding;
  config.masked_words = MaskedWordsConfig{.activation = Activation::kGelu};  // whatever hidden_act is
  std::optional<Labels> labels = read_labels(json, name);
  std::span<const ModuleName> modules = std::span<const ModuleName>(kElectraModules).first(3);
  LabelConfig token_labels = {.rows = LabelRows::kTokens};
  if (fields.is_discriminator()) {
    labels = Labels{.of = LabelsOf::kTokens, .scores = LabelScores::kSigmoid, .names = {"replaced"}};
    modules = kElectraModules;
    token_labels.dense = LabelDense{.activation = sizes.activation};
  } else if (labels && labels->of == LabelsOf::kTexts) {
    modules = kElectraTextModules;
  }
  return encoder_plan(
      config, sizes.tied, labels,
      {.model_type = "electra",
       .prefix = "electra.",
       .modules = modules,
       .masked_words = "generator_lm_head.bias",
       .no_weights = kElectraOthers,
       .twins = kElectraTwins,
       .text_labels = {.rows = LabelRows::kFirst, .dense = LabelDense{.activation = Activation::kGelu}},
       .token_labels = token_labels,
       .other_heads = {"classifier.", "qa_outputs.", "sequence_summary.", "discriminator_predictions.",
                       "generator_predictions.", "generator_lm_head."}},
      name, wrong);
}

}  // namespace

extern const OracleModules kBertOracle;
extern const Family kElectraFamily;
const Family kElectraFamily = {"electra",   "an encoder of ElectraModel", read_electra, electra_keys, {},
                               &kBertOracle};

}  // namespace mh

// RoBERTa (Liu et al. 2019; Hugging Face's RobertaModel, RobertaForMaskedLM), XLM-RoBERTa (Conneau et al. 2020) and CamemBERT
// (Martin et al. 2020), which differ by their names only: BERT with one type of token, positions that begin behind the row of
// the padding token, and a head for masked words of other names.
#include "multihead/folders/families/bert.h"

namespace mh {
namespace {

constexpr std::array kRobertaModules = {kLmHeadModules[0], kLmHeadModules[1], kLmHeadModules[2],
                                        kTextLabelModule};

FolderPlan read_roberta_as(std::string_view model_type, int32_t vocabulary, std::string_view json,
                           std::string_view name) {
  std::vector<std::string> wrong;
  BertSizes sizes = read_bert_sizes({.vocabulary = vocabulary, .pad = 1}, json, name, wrong);
  // Position p has row p + pad_token_id + 1: the row of the padding token itself stays zero.
  sizes.put_position_offset(sizes.pad.value_or(-1) + 1, wrong);
  EncoderConfig config = bert_config(sizes);
  config.embedding.uncounted = sizes.pad;
  config.masked_words = MaskedWordsConfig{.activation = Activation::kGelu};  // whatever hidden_act is
  const std::optional<Labels> labels = read_labels(json, name);
  const bool of_texts = labels && labels->of == LabelsOf::kTexts;
  return encoder_plan(config, sizes.tied, labels,
                      {.model_type = model_type,
                       .prefix = "roberta.",
                       .modules = of_texts ? std::span<const ModuleName>(kRobertaModules) : kLmHeadModules,
                       .pooler = "pooler.dense.weight",
                       .masked_words = "lm_head.bias",
                       .no_weights = kLmHeadOthers,
                       .twins = kLmHeadTwins,
                       .text_labels = {.rows = LabelRows::kFirst, .dense = LabelDense()}},
                      name, wrong);
}

constexpr std::string_view kRoberta = "roberta", kXlmRoberta = "xlm-roberta", kCamembert = "camembert";

/// With the default of its configuration where vocab_size is missing.
FolderPlan read_roberta(std::string_view json, std::string_view name) {
  return read_roberta_as(kRoberta, 50265, json, name);
}
FolderPlan read_xlm_roberta(std::string_view json, std::string_view name) {
  return read_roberta_as(kXlmRoberta, 30522, json, name);
}
FolderPlan read_camembert(std::string_view json, std::string_view name) {
  return read_roberta_as(kCamembert, 30522, json, name);
}

}  // namespace

extern const OracleModules kBertOracle;
extern const Family kRobertaFamily;
const Family kRobertaFamily = {kRoberta,    "an encoder of RobertaModel", read_roberta, bert_keys, {},
                               &kBertOracle};
extern const Family kCamembertFamily;
const Family kCamembertFamily = {kCamembert,  "an encoder of CamembertModel", read_camembert, bert_keys, {},
                                 &kBertOracle};
extern const Family kXlmRobertaFamily;
const Family kXlmRobertaFamily = {
    kXlmRoberta, "an encoder of XLMRobertaModel", read_xlm_roberta, bert_keys, {}, &kBertOracle};

}  // namespace mh

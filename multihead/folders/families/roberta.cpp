// RoBERTa (Liu et al. 2019; Hugging Face's RobertaModel, RobertaForMaskedLM), XLM-RoBERTa (Conneau et al. 2020) and CamemBERT
// (Martin et al. 2020), which differ by their names only: BERT with one type of token, positions that begin behind the row of
// the padding token, and a head for masked words of other names.
#include "multihead/folders/families/bert.h"

#include <fmt/format.h>

namespace mh {
namespace {

constexpr std::array kRobertaTensors = joined(
    kBertEncoderTensors, std::array{
                             TensorName{"masked_words.w", "lm_head.dense.weight", kBertMatrix},
                             TensorName{"masked_words.b", "lm_head.dense.bias", kBertRow},
                             TensorName{"masked_words.norm.gain", "lm_head.layer_norm.weight", kBertRow},
                             TensorName{"masked_words.norm.bias", "lm_head.layer_norm.bias", kBertRow},
                             TensorName{"masked_words.output_bias", "lm_head.bias", kBertRow},
                         });

// Numbers of positions, and the tied output.
constexpr std::array<std::string_view, 3> kRobertaOthers = {"embeddings.position_ids",
                                                            "lm_head.decoder.weight", "lm_head.decoder.bias"};

FolderPlan read_roberta_as(std::string_view model_type, std::string_view json, std::string_view name) {
  std::vector<std::string> wrong;
  BertSizes sizes = read_bert_sizes({.vocabulary = 50265, .pad = 1}, json, name, wrong);
  // Position p has row p + pad_token_id + 1: the row of the padding token itself stays zero.
  sizes.position_offset = sizes.pad.value_or(-1) + 1;
  if (sizes.position_offset >= sizes.positions) {
    wrong.push_back(fmt::format("max_position_embeddings is {}; expected more than pad_token_id + 1, {}",
                                sizes.positions, sizes.position_offset));
    sizes.position_offset = 0;
  }
  sizes.masked_words_activation = Activation::kGelu;  // whatever hidden_act is
  return bert_plan(sizes,
                   {.model_type = model_type,
                    .prefix = "roberta.",
                    .tensors = kRobertaTensors,
                    .pooler = "pooler.dense.weight",
                    .masked_words = "lm_head.bias",
                    .no_weights = kRobertaOthers},
                   name, wrong);
}

constexpr std::string_view kRoberta = "roberta", kXlmRoberta = "xlm-roberta", kCamembert = "camembert";

FolderPlan read_roberta(std::string_view json, std::string_view name) {
  return read_roberta_as(kRoberta, json, name);
}
FolderPlan read_xlm_roberta(std::string_view json, std::string_view name) {
  return read_roberta_as(kXlmRoberta, json, name);
}
FolderPlan read_camembert(std::string_view json, std::string_view name) {
  return read_roberta_as(kCamembert, json, name);
}

}  // namespace

extern const Family kRobertaFamily;
const Family kRobertaFamily = {kRoberta, "an encoder of RobertaModel", read_roberta};
extern const Family kCamembertFamily;
const Family kCamembertFamily = {kCamembert, "an encoder of CamembertModel", read_camembert};
extern const Family kXlmRobertaFamily;
const Family kXlmRobertaFamily = {kXlmRoberta, "an encoder of XLMRobertaModel", read_xlm_roberta};

}  // namespace mh

// Small random folders of each family with one tokenizer, for tests of attribution: every kind of model that reads a text.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/sentence_model.h"
#include "multihead/models/translator_shape.h"
#include "multihead/text/train_tokenizer.h"
#include "tests/heads/measures/circuit_families.h"

namespace mh::test {

inline const std::vector<std::string> kAttributionLines = {
    "two dogs run in the park", "a cat sees the small dogs", "two small cats and two dogs see a park ."};

/// Of 0.35 times normal numbers, and gains around 1: heads that differ, and a smooth way from one text to another.
inline ModelFolder attribution_folder(std::unique_ptr<Model> model, Tokenizer tokenizer) {
  ModelFolder folder;
  folder.model_type = "test";
  fill_parameters(*model, 7);
  model->visit(ParameterVisitor([](const std::string& name, Parameter& parameter) {
    if (name.ends_with(".gain") || name.ends_with("_norm")) return;
    for (int64_t i = 0; i < parameter.value.size(); ++i) parameter.value.data()[i] *= 0.7f;
    parameter.changed();
  }));
  folder.model = std::move(model);
  folder.tokenizer = std::move(tokenizer);
  return folder;
}

inline Tokenizer attribution_tokenizer() {
  return train_bpe(kAttributionLines, {.vocabulary_size = 90, .least_pair_count = 1});
}

inline ModelFolder attribution_translator(NormPlacement placement = NormPlacement::kPost) {
  Tokenizer tokenizer = attribution_tokenizer();
  TranslatorShape shape = small_shape();
  shape.vocabulary_size = tokenizer.size();
  shape.d_model = 13;
  shape.encoder_heads = 2;
  shape.decoder_heads = 3;
  shape.geometry = {.d_key = 5, .d_value = 7};
  shape.norm = placement;
  return attribution_folder(std::make_unique<EncoderDecoder>(shape.config()), std::move(tokenizer));
}

inline ModelFolder attribution_encoder(bool words = true) {
  Tokenizer tokenizer = attribution_tokenizer();
  EncoderConfig config = encoder_config();
  config.embedding.vocabulary = tokenizer.size();
  config.max_positions = 43;
  if (!words) config.masked_words.reset();
  return attribution_folder(std::make_unique<EncoderModel>(config), std::move(tokenizer));
}

inline ModelFolder with_labels(ModelFolder folder, LabelRows rows) {
  folder.labels = Labels{.of = rows == LabelRows::kTokens ? LabelsOf::kTokens : LabelsOf::kTexts,
                         .names = {"joy", "anger", "fear"}};
  return folder;
}

/// Its labels: of texts by one layer or two, or of tokens.
inline ModelFolder attribution_classifier(LabelRows rows, std::optional<LabelDense> dense = {}) {
  Tokenizer tokenizer = attribution_tokenizer();
  EncoderConfig config = encoder_config();
  config.embedding.vocabulary = tokenizer.size();
  config.max_positions = 43;
  config.masked_words.reset();
  config.pooler = rows == LabelRows::kPooled;
  config.labels = LabelConfig{.labels = 3, .rows = rows, .dense = dense};
  return with_labels(attribution_folder(std::make_unique<EncoderModel>(config), std::move(tokenizer)), rows);
}

/// Two heads of values for six of queries.
inline CausalConfig attribution_llama_config(int32_t vocabulary) {
  CausalConfig config = gpt_config();
  config.embedding.vocabulary = vocabulary;
  config.max_positions = 43;
  config.tied = false;
  config.positions = config.stack.positions = Positions::kRotary;
  config.stack.norm.kind = NormKind::kRms;
  for (LayerConfig& layer : config.stack.layers) {
    layer.self_attention = {.heads = 6,
                            .d_key = 4,
                            .d_value = 5,
                            .key_heads = 2,
                            .query_key_norm = QueryKeyNorm::kRms,
                            .biases = Biases::kNone};
  }
  return config;
}

inline ModelFolder attribution_llama() {
  Tokenizer tokenizer = attribution_tokenizer();
  const CausalConfig config = attribution_llama_config(tokenizer.size());
  return attribution_folder(std::make_unique<CausalModel>(config), std::move(tokenizer));
}

/// Its labels, of texts or of tokens. Its padding token is the one that replaces others in attributions: the unknown one, else the
/// end token.
inline ModelFolder attribution_labelled_llama(LabelRows rows, Tokenizer tokenizer = attribution_tokenizer()) {
  CausalConfig config = attribution_llama_config(tokenizer.size());
  config.predicts = false;
  config.eos_id = config.pad_id = tokenizer.unknown_id().value_or(2);
  config.labels = LabelConfig{.labels = 3, .rows = rows, .bias = rows == LabelRows::kTokens};
  return with_labels(attribution_folder(std::make_unique<CausalModel>(config), std::move(tokenizer)), rows);
}

inline SentenceModel attribution_sentences() {
  SentenceModel model{.folder = attribution_encoder(false)};
  model.longest = 43;
  model.dimension = model.folder.model->facts().d_model;
  return model;
}

}  // namespace mh::test

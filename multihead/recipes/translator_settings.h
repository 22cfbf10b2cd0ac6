// All that can be set about training a translator. One list, visit(), drives the flags of `multihead train`,
// its
// --config and --dump-config files, what a checkpoint remembers, and the comparison when a run goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/models/transformer_config.h"
#include "multihead/text/train_tokenizer.h"
#include "multihead/train/trainer.h"
#include "multihead/train/training_run.h"

namespace mh {

/// Names are those of the flags. Empty strings and optionals are "not given"; resolved() fills the optionals.
struct TranslatorSettings {
  // Text, a sentence a line, plain or gzip.
  std::string train_source, train_target;
  std::string valid_source, valid_target;  // both or neither
  std::string model;                       // the folder that is made

  // Tokens.
  std::string tokenizer;  // a tokenizer.json to use; empty: one is learned on the training text
  int32_t vocabulary_size = 8000;
  bool separate_vocabularies = false;
  bool word_level = false;
  bool lowercase = false;
  Normalization normalization = Normalization::nfkc;
  int32_t max_length =
      256;  // tokens of a sentence, end token included; longer pairs are left out and counted

  // Shape: a preset and what differs from it.
  std::string preset = "tiny";
  std::optional<int32_t> d_model, d_ff, encoder_layers, decoder_layers, heads;
  NormPlacement norm = NormPlacement::kPost;
  Activation activation = Activation::kRelu;
  std::optional<float> dropout;  // residual: of each sub-layer's output and of the embeddings
  float attention_dropout = 0;   // of the attention weights
  float activation_dropout = 0;  // inside the feed-forward layers
  float embedding_init = 1;      // embeddings begin as N(0, x^2 / d_model)
  std::string init_from;         // a model folder whose weights are the beginning

  // Learning.
  int64_t updates = 0;  // 0: no limit
  int64_t epochs = 0;   // 0: no limit
  std::optional<int32_t> batch_tokens;
  BatchOptions::Count batch_count = BatchOptions::Count::target_tokens;
  int32_t accumulate = 1;
  std::optional<double> learning_rate;  // the peak
  std::optional<int64_t> warmup;
  Schedule::Decay schedule = Schedule::Decay::kInverseSquareRoot;  // kLinear falls to 0 at `updates`
  float label_smoothing = 0.1f;
  double adam_beta1 = 0.9, adam_beta2 = 0.98, adam_epsilon = 1e-9;
  double weight_decay = 0;
  double clip_norm = 1;
  uint64_t seed = 1;

  // Validation.
  int64_t validate_every = 500;
  int32_t validate_beam = 5;  // 0: no translations, no BLEU
  Metric metric = Metric::kBleu;
  int32_t patience = 0;

  // Checkpoints.
  int64_t save_every = 0;  // 0: with every validation
  int32_t keep = 2;
  int32_t average = 1;
  AverageOf average_of = AverageOf::kBest;
  int64_t log_every = 50;

  template <class V>
  void visit(V& v) {
    v("train-source", train_source);
    v("train-target", train_target);
    v("valid-source", valid_source);
    v("valid-target", valid_target);
    v("model", model);
    v("tokenizer", tokenizer);
    v("vocabulary-size", vocabulary_size, {.low = 4, .high = 1'000'000});
    v("separate-vocabularies", separate_vocabularies);
    v("word-level", word_level);
    v("lowercase", lowercase);
    v("normalization", normalization,
      {{"none", Normalization::none}, {"nfc", Normalization::nfc}, {"nfkc", Normalization::nfkc}});
    v("max-length", max_length, {.low = 2, .high = 65536});
    v("preset", preset);
    v("d-model", d_model, {.low = 1, .high = 65536});
    v("d-ff", d_ff, {.low = 1, .high = 262144});
    v("encoder-layers", encoder_layers, {.low = 1, .high = 512});
    v("decoder-layers", decoder_layers, {.low = 1, .high = 512});
    v("heads", heads, {.low = 1, .high = 1024});
    v("norm", norm, {{"post", NormPlacement::kPost}, {"pre", NormPlacement::kPre}});
    v("activation", activation,
      {{"relu", Activation::kRelu}, {"gelu", Activation::kGelu}, {"swish", Activation::kSwish}});
    v("dropout", dropout, {.low = 0, .high = 0.95f});
    v("attention-dropout", attention_dropout, {.low = 0, .high = 0.95f});
    v("activation-dropout", activation_dropout, {.low = 0, .high = 0.95f});
    v("embedding-init", embedding_init, {.low = 0.001f, .high = 1000});
    v("init-from", init_from);
    v("updates", updates, {.low = 0, .high = 1'000'000'000});
    v("epochs", epochs, {.low = 0, .high = 1'000'000'000});
    v("batch-tokens", batch_tokens, {.low = 1, .high = 10'000'000});
    v("batch-count", batch_count,
      {{"target", BatchOptions::Count::target_tokens}, {"padded", BatchOptions::Count::padded}});
    v("accumulate", accumulate, {.low = 1, .high = 10'000});
    v("learning-rate", learning_rate, {.low = 0, .high = 1000});
    v("warmup", warmup, {.low = 0, .high = 1'000'000'000});
    v("schedule", schedule,
      {{"inverse-square-root", Schedule::Decay::kInverseSquareRoot}, {"linear", Schedule::Decay::kLinear}});
    v("label-smoothing", label_smoothing, {.low = 0, .high = 0.95f});
    v("adam-beta1", adam_beta1, {.low = 0, .high = 0.999999});
    v("adam-beta2", adam_beta2, {.low = 0, .high = 0.999999});
    v("adam-epsilon", adam_epsilon, {.low = 1e-30, .high = 1});
    v("weight-decay", weight_decay, {.low = 0, .high = 1});
    v("clip-norm", clip_norm, {.low = 0, .high = 1e30});
    v("seed", seed);
    v("validate-every", validate_every, {.low = 1, .high = 1'000'000'000});
    v("validate-beam", validate_beam, {.low = 0, .high = 64});
    v("metric", metric, {{"loss", Metric::kLoss}, {"bleu", Metric::kBleu}});
    v("patience", patience, {.low = 0, .high = 1'000'000});
    v("save-every", save_every, {.low = 0, .high = 1'000'000'000});
    v("keep", keep, {.low = 1, .high = 1'000'000});
    v("average", average, {.low = 1, .high = 10'000});
    v("average-of", average_of, {{"last", AverageOf::kLast}, {"best", AverageOf::kBest}});
    v("log-every", log_every, {.low = 1, .high = 1'000'000'000});
  }
};

/// With what the preset brings in place of what was not given, and what follows from other settings. Throws
/// UsageError on an unknown preset.
TranslatorSettings resolved(TranslatorSettings settings);
/// Throws UsageError on settings that are missing or contradict each other.
void check(const TranslatorSettings& settings);

/// The model's shape. REQUIRES: settings are resolved.
TransformerConfig model_config(const TranslatorSettings& settings, int32_t vocabulary_size,
                               int32_t target_vocabulary_size);

/// Those that decide what is learned, as text. Paths (the contents are compared instead), how long to go on
/// (unless the schedule depends on it) and how much to keep may change when a run goes on. REQUIRES: settings
/// are resolved.
std::vector<Setting> lasting_settings(const TranslatorSettings& settings);

}  // namespace mh

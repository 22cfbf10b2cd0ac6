// All that can be set about training a translator. One list, visit(), is what flags, files of settings, what
// a checkpoint remembers, and the comparison when a run goes on come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/models/encoder_decoder_config.h"
#include "multihead/text/train_tokenizer.h"
#include "multihead/train/trainer.h"
#include "multihead/train/training_run.h"

namespace mh {

/// Segments of the row that heads read, instead of all of it.
enum class Segments {
  kNone,
  kPermuted,  // slices of a random permutation
  kSpread,    // contiguous, of segment_size, spread evenly: they may overlap
  kRandom,    // random columns, segment_size of them
};

/// Empty strings and optionals are "not given"; resolved() fills the optionals.
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
  // Heads: a geometry by name (geometry_names()), and what differs from it.
  std::string
      geometry;  // or JSON, or a file of it (named_geometry()); empty: the preset's, which is canonical
  std::optional<int32_t> d_key, d_value, key_heads, value_heads;
  std::optional<HeadInput::Kind> head_input;
  Segments segments = Segments::kNone;
  std::optional<int32_t> segment_size;
  std::optional<Scores> scores;
  std::optional<int32_t> shared_size;
  std::optional<QueryKeyNorm> query_key_norm;
  std::optional<HeadWeights> head_weights;
  std::optional<Biases> biases;
  std::optional<HeadOutput> head_output;
  std::optional<float> scale;
  std::optional<HeadInitialisation> initialisation;
  std::optional<Positions> positions;
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
  std::optional<float> label_smoothing;
  Disagreement disagreement = Disagreement::kNone;  // a regulariser that makes heads differ
  float disagreement_weight = 1;
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
    v("train_source", train_source);
    v("train_target", train_target);
    v("valid_source", valid_source);
    v("valid_target", valid_target);
    v("model", model);
    v("tokenizer", tokenizer);
    v("vocabulary_size", vocabulary_size, {.low = 4, .high = 1'000'000});
    v("separate_vocabularies", separate_vocabularies);
    v("word_level", word_level);
    v("lowercase", lowercase);
    v("normalization", normalization,
      {{"none", Normalization::none}, {"nfc", Normalization::nfc}, {"nfkc", Normalization::nfkc}});
    v("max_length", max_length, {.low = 2, .high = 65536});
    v("preset", preset);
    v("d_model", d_model, {.low = 1, .high = 65536});
    v("d_ff", d_ff, {.low = 1, .high = 262144});
    v("encoder_layers", encoder_layers, {.low = 1, .high = 512});
    v("decoder_layers", decoder_layers, {.low = 1, .high = 512});
    v("heads", heads, {.low = 1, .high = 1024});
    v("geometry", geometry);
    v("d_key", d_key, {.low = 1, .high = 1024});
    v("d_value", d_value, {.low = 1, .high = 1024});
    v("key_heads", key_heads, {.low = 1, .high = 1024});
    v("value_heads", value_heads, {.low = 1, .high = 1024});
    v("head_input", head_input,
      {{"whole_row", HeadInput::Kind::kWholeRow},
       {"slices", HeadInput::Kind::kSlices},
       {"projected_slices", HeadInput::Kind::kProjectedSlices}});
    v("segments", segments,
      {{"none", Segments::kNone},
       {"permuted", Segments::kPermuted},
       {"spread", Segments::kSpread},
       {"random", Segments::kRandom}});
    v("segment_size", segment_size, {.low = 1, .high = 65536});
    v("scores", scores, kScoresNames);
    v("shared_size", shared_size, {.low = 1, .high = 1024});
    v("qk_norm", query_key_norm, kQueryKeyNormNames);
    v("head_weights", head_weights, kHeadWeightsNames);
    v("biases", biases, kBiasesNames);
    v("head_output", head_output, kHeadOutputNames);
    v("scale", scale, {.low = 0, .high = 1000});
    v("initialisation", initialisation, kHeadInitialisationNames);
    v("positions", positions, kPositionNames);
    v("norm", norm, {{"post", NormPlacement::kPost}, {"pre", NormPlacement::kPre}});
    v("activation", activation,
      {{"relu", Activation::kRelu}, {"gelu", Activation::kGelu}, {"swish", Activation::kSwish}});
    v("dropout", dropout, {.low = 0, .high = 0.95f});
    v("attention_dropout", attention_dropout, {.low = 0, .high = 0.95f});
    v("activation_dropout", activation_dropout, {.low = 0, .high = 0.95f});
    v("embedding_init", embedding_init, {.low = 0.001f, .high = 1000});
    v("init_from", init_from);
    v("updates", updates, {.low = 0, .high = 1'000'000'000});
    v("epochs", epochs, {.low = 0, .high = 1'000'000'000});
    v("batch_tokens", batch_tokens, {.low = 1, .high = 10'000'000});
    v("batch_count", batch_count,
      {{"target", BatchOptions::Count::target_tokens}, {"padded", BatchOptions::Count::padded}});
    v("accumulate", accumulate, {.low = 1, .high = 10'000});
    v("learning_rate", learning_rate, {.low = 0, .high = 1000});
    v("warmup", warmup, {.low = 0, .high = 1'000'000'000});
    v("schedule", schedule,
      {{"inverse-square-root", Schedule::Decay::kInverseSquareRoot}, {"linear", Schedule::Decay::kLinear}});
    v("label_smoothing", label_smoothing, {.low = 0, .high = 0.95f});
    v("disagreement", disagreement, kDisagreementNames);
    v("disagreement_weight", disagreement_weight, {.low = 0, .high = 1000});
    v("adam_beta1", adam_beta1, {.low = 0, .high = 0.999999});
    v("adam_beta2", adam_beta2, {.low = 0, .high = 0.999999});
    v("adam_epsilon", adam_epsilon, {.low = 1e-30, .high = 1});
    v("weight_decay", weight_decay, {.low = 0, .high = 1});
    v("clip_norm", clip_norm, {.low = 0, .high = 1e30});
    v("seed", seed);
    v("validate_every", validate_every, {.low = 1, .high = 1'000'000'000});
    v("validate_beam", validate_beam, {.low = 0, .high = 64});
    v("metric", metric, {{"loss", Metric::kLoss}, {"bleu", Metric::kBleu}});
    v("patience", patience, {.low = 0, .high = 1'000'000});
    v("save_every", save_every, {.low = 0, .high = 1'000'000'000});
    v("keep", keep, {.low = 1, .high = 1'000'000});
    v("average", average, {.low = 1, .high = 10'000});
    v("average_of", average_of, {{"last", AverageOf::kLast}, {"best", AverageOf::kBest}});
    v("log_every", log_every, {.low = 1, .high = 1'000'000'000});
  }
};

/// With what the preset brings in place of what was not given, and what follows from other settings. Throws
/// UsageError on an unknown preset.
TranslatorSettings resolved(TranslatorSettings settings);
/// Throws UsageError on settings that are missing or contradict each other.
void check(const TranslatorSettings& settings);

/// The model's shape. REQUIRES: settings are resolved.
EncoderDecoderConfig model_config(const TranslatorSettings& settings, int32_t vocabulary_size,
                                  int32_t target_vocabulary_size);

/// Those that decide what is learned, as text. Paths (the contents are compared instead), how long to go on
/// (unless the schedule depends on it) and how much to keep may change when a run goes on. REQUIRES: settings
/// are resolved.
std::vector<Setting> lasting_settings(const TranslatorSettings& settings);

}  // namespace mh

// TranslatorSettings: all settings of training a translator. visit() lists them once; flags, files of
// settings, the settings in a checkpoint and the comparison when a run resumes come from that list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/batch/plan_batches.h"
#include "multihead/io/lines.h"
#include "multihead/models/head_changes.h"
#include "multihead/models/named_geometry.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/disagreement.h"
#include "multihead/text/train_tokenizer.h"
#include "multihead/train/run_options.h"
#include "multihead/train/schedule.h"
#include "multihead/train/translator/pair_texts.h"

namespace mh {

/// Which segment of a row each head reads, instead of the whole row.
enum class Segments {
  kNone,
  kPermuted,  // slices of a random permutation
  kSpread,    // contiguous, of segment_size, spread evenly: they may overlap
  kRandom,    // random columns, segment_size of them
};

/// An empty string or optional means "not given"; resolved() fills in the optionals.
struct TranslatorSettings {
  // Text, a sentence a line, plain or gzip.
  std::string train_source, train_target;
  std::string valid_source, valid_target;  // both or neither
  TextLimits text_limits;
  std::string model;  // the folder to write

  // Tokens.
  std::string tokenizer;  // a tokenizer.json; empty: a tokenizer is learned on the training text
  int32_t vocabulary_size = 8000;
  bool separate_vocabularies = false;
  bool word_level = false;
  bool lowercase = false;
  Normalization normalization = Normalization::kNfkc;
  /// The longest sentence, in tokens with the end token; longer pairs are left out and counted.
  int32_t max_length = 256;

  // Shape: a preset, and the settings that override it.
  std::string preset = "tiny";
  std::optional<int32_t> d_model, d_ff, encoder_layers, decoder_layers, heads;
  // Heads: a geometry by name (geometry_names()), and the fields that override it.
  /// A name, JSON, or a file with JSON (named_geometry()); empty: the preset's, canonical heads.
  std::string geometry;
  HeadChanges head_changes;
  Segments segments = Segments::kNone;
  std::optional<int32_t> segment_size;
  std::optional<Positions> positions;
  NormPlacement norm = NormPlacement::kPost;
  Activation activation = Activation::kRelu;
  std::optional<float> dropout;  // residual: of each sub-layer's output and of the embeddings
  float attention_dropout = 0;   // rate for the attention weights
  float activation_dropout = 0;  // inside the feed-forward layers
  float embedding_init = 1;      // x: embeddings start as N(0, x^2 / d_model)
  std::string init_from;         // a model folder whose weights, shape and tokenizer the training starts with
  PairTexts pair_texts = {};     // of init_from alone

  // Learning.
  int64_t updates = 0;  // 0: no limit
  int64_t epochs = 0;   // 0: no limit
  std::optional<int32_t> batch_tokens;
  BatchOptions::Count batch_count = BatchOptions::Count::kTokens;
  int32_t accumulate = 1;
  std::optional<double> learning_rate;  // the peak
  std::optional<int64_t> warmup;
  Schedule::Decay schedule = Schedule::Decay::kInverseSquareRoot;  // kLinear falls to 0 at `updates`
  std::optional<float> label_smoothing;
  Disagreement disagreement = {};  // a regulariser that makes heads differ
  float disagreement_weight = 1;
  std::optional<float>
      head_gates;  // the price of an open head, whose gates are learned; none: heads have no gates
  double adam_beta1 = 0.9, adam_beta2 = 0.98, adam_epsilon = 1e-9;
  double weight_decay = 0;
  double clip_norm = 1;
  uint64_t seed = 1;

  // Several processes (ranks), started by mpirun or srun.
  bool reproducible = false;     // the same bits on 1, 2 and 4 ranks
  bool share_corpus = false;     // rank 0 alone reads the text
  bool shard_optimiser = false;  // each rank keeps its share of Adam's moments
  double rank_timeout = 600;     // seconds without an answer after which a rank counts as lost

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
    constexpr const char *kText = "Text", *kTokens = "Tokenizer", *kShape = "Model", *kHeads = "Heads",
                         *kLearning = "Learning", *kRanks = "Several processes", *kValidation = "Validation",
                         *kCheckpoints = "Checkpoints";
    v("train_source", train_source, {},
      {.group = kText,
       .help = "Training text in the source language, one sentence per line (gzip or not)",
       .otherwise = "needed"});
    v("train_target", train_target, {},
      {.group = kText,
       .help = "Its translation into the target language, line by line",
       .otherwise = "needed"});
    v("valid_source", valid_source, {}, {.group = kText, .help = "Validation text in the source language"});
    v("valid_target", valid_target, {}, {.group = kText, .help = "Its translation"});
    text_limits.visit(v);
    v("model", model, {},
      {.group = kText,
       .help = "Folder of the trained model; a run that was stopped there goes on",
       .otherwise = "needed"});
    v("tokenizer", tokenizer, {},
      {.group = kTokens,
       .help = "Use this tokenizer.json, which must have <pad> and append </s>; without it, one is learned "
               "from the training text"});
    v("vocabulary_size", vocabulary_size, {.low = 4, .high = 1'000'000},
      {.group = kTokens, .help = "Largest vocabulary to learn, in tokens; one for both languages"});
    v("separate_vocabularies", separate_vocabularies, {},
      {.group = kTokens, .help = "A vocabulary for each language instead of a joint one"});
    v("word_level", word_level, {},
      {.group = kTokens, .help = "Tokens are whole words between spaces, not pieces of byte-pair encoding"});
    v("lowercase", lowercase, {}, {.group = kTokens, .help = "Lower-case all text"});
    v("normalization", normalization,
      {{"none", Normalization::kNone}, {"nfc", Normalization::kNfc}, {"nfkc", Normalization::kNfkc}},
      {.group = kTokens, .help = "Unicode normal form of the text"});
    v("max_length", max_length, {.low = 2, .high = 65536},
      {.group = kTokens, .help = "Longest sentence in tokens; longer pairs are left out and counted"});
    v("preset", preset, {},
      {.group = kShape,
       .help = "Sizes and training settings by name: tiny, small, base, big, or a row of Table 3 of "
               "\"Attention is all you need\", such as "
               "base-h16, base-dk16, base-n2, base-d256, base-dff1024, base-dropout0, base-smoothing0 or "
               "base-learned; tiny-h1, tiny-dk8, ... are rows of the same table made of tiny"});
    v("d_model", d_model, kModelWidths,
      {.group = kShape, .help = "Width of the model: numbers per token", .otherwise = "by preset"});
    v("d_ff", d_ff, {.low = 1, .high = 262144},
      {.group = kShape, .help = "Width inside the feed-forward layers", .otherwise = "by preset"});
    v("encoder_layers", encoder_layers, {.low = 1, .high = 512},
      {.group = kShape, .help = "Layers of the encoder", .otherwise = "by preset"});
    v("decoder_layers", decoder_layers, {.low = 1, .high = 512},
      {.group = kShape, .help = "Layers of the decoder", .otherwise = "by preset"});
    v("heads", heads, kHeadCounts,
      {.group = kShape, .help = "Heads of each attention", .otherwise = "by preset"});
    v("geometry", geometry, {}, {.group = kHeads, .help = about_geometries()});
    head_changes.visit(v);
    v("segments", segments,
      {{"none", Segments::kNone},
       {"permuted", Segments::kPermuted},
       {"spread", Segments::kSpread},
       {"random", Segments::kRandom}},
      {.group = kHeads,
       .help = "Columns of its input that each head reads: all (none), a slice of a random permutation, "
               "segments spread evenly, or random ones"});
    v("segment_size", segment_size, kModelWidths,
      {.group = kHeads, .help = "Columns in a spread or random segment"});
    v("positions", positions, kWriterPositionNames,
      {.group = kHeads,
       .help = "Positional encoding: added to the embeddings (sinusoidal, learned) or part of each "
               "self-attention (rotary, alibi, t5, shaw)",
       .otherwise = "by preset"});
    v("norm", norm, {{"post", NormPlacement::kPost}, {"pre", NormPlacement::kPre}},
      {.group = kShape,
       .help = "Layer norm after each sub-layer (post, as in the paper) or before it (pre)"});
    v("activation", activation, kActivationNames,
      {.group = kShape, .help = "Activation function of the feed-forward layers"});
    v("dropout", dropout, {.low = 0, .high = 0.95f},
      {.group = kShape,
       .help = "Dropout rate of the sub-layers' outputs and of the embeddings",
       .otherwise = "by preset"});
    v("attention_dropout", attention_dropout, {.low = 0, .high = 0.95f},
      {.group = kShape, .help = "Dropout rate of the attention weights"});
    v("activation_dropout", activation_dropout, {.low = 0, .high = 0.95f},
      {.group = kShape, .help = "Dropout rate inside the feed-forward layers"});
    v("embedding_init", embedding_init, {.low = 0.001f, .high = 1000},
      {.group = kShape, .help = "Embeddings start as N(0, x^2 / d_model) with this x"});
    v("init_from", init_from, {},
      {.group = kShape, .help = "Go on from this translator, of any family, and write folders like its own"});
    pair_texts.visit(v, kShape);
    v("updates", updates, {.low = 0, .high = 1'000'000'000},
      {.group = kLearning, .help = "Stop after this many updates; 0: no limit"});
    v("epochs", epochs, {.low = 0, .high = 1'000'000'000},
      {.group = kLearning, .help = "Stop after this many passes over the training text; 0: no limit"});
    v("batch_tokens", batch_tokens, {.low = 1, .high = 10'000'000},
      {.group = kLearning, .help = "Most source or target tokens in a batch", .otherwise = "by preset"});
    v("batch_count", batch_count,
      {{"target", BatchOptions::Count::kTokens}, {"padded", BatchOptions::Count::kPadded}},
      {.group = kLearning,
       .help = "Which tokens of a batch count: the target's, or both sides' with padding"});
    v("accumulate", accumulate, {.low = 1, .high = 10'000},
      {.group = kLearning, .help = "Batches per update; the loss is the mean over all their tokens"});
    v("learning_rate", learning_rate, {.low = 0, .high = 1000},
      {.group = kLearning,
       .help = "Highest learning rate, reached at the end of the warmup",
       .otherwise = "by preset"});
    v("warmup", warmup, {.low = 0, .high = 1'000'000'000},
      {.group = kLearning,
       .help = "Updates in which the learning rate rises linearly",
       .otherwise = "by preset"});
    v("schedule", schedule,
      {{"inverse-square-root", Schedule::Decay::kInverseSquareRoot}, {"linear", Schedule::Decay::kLinear}},
      {.group = kLearning,
       .help = "How the learning rate falls after the warmup: as 1/sqrt(update), or linearly to 0 at the "
               "last of `updates`"});
    v("label_smoothing", label_smoothing, {.low = 0, .high = 0.95f},
      {.group = kLearning,
       .help = "Share of the target's probability that is spread over the vocabulary",
       .otherwise = "by preset"});
    v("disagreement", disagreement, kDisagreementNames,
      {.group = kLearning,
       .help =
           "Regulariser that makes heads differ: in their values (subspace), their weights (positions), "
           "their outputs before W^O (output), several of these, or in what they add to the layer's output "
           "(written)"});
    v("disagreement_weight", disagreement_weight, {.low = 0, .high = 1000},
      {.group = kLearning, .help = "Weight of the regulariser of `disagreement` in the loss"});
    v("head_gates", head_gates, {.low = 0, .high = 1000},
      {.group = kLearning,
       .help = "Learn gates that close heads: the price of an open head in the loss, in nats a target token",
       .otherwise = "no gates"});
    v("adam_beta1", adam_beta1, {.low = 0, .high = 0.999999},
      {.group = kLearning, .help = "Adam's beta_1, the decay of the first moment"});
    v("adam_beta2", adam_beta2, {.low = 0, .high = 0.999999},
      {.group = kLearning, .help = "Adam's beta_2, the decay of the second moment"});
    v("adam_epsilon", adam_epsilon, {.low = 1e-30, .high = 1},
      {.group = kLearning, .help = "Adam's epsilon"});
    v("weight_decay", weight_decay, {.low = 0, .high = 1},
      {.group = kLearning, .help = "Decoupled weight decay (AdamW) of the matrices"});
    v("clip_norm", clip_norm, {.low = 0, .high = 1e30},
      {.group = kLearning, .help = "Clip the gradient to this norm; 0: do not clip"});
    v("seed", seed, {},
      {.group = kLearning,
       .help = "Seed of weights, batches and dropout; the number of threads changes no bit"});
    v("reproducible", reproducible, {},
      {.group = kRanks,
       .help = "The same bits on 1, 2 and 4 ranks: every update is summed in four fixed shards"});
    v("share_corpus", share_corpus, {},
      {.group = kRanks, .help = "Rank 0 alone reads the text and sends it as tokens"});
    v("shard_optimiser", shard_optimiser, {},
      {.group = kRanks, .help = "Each rank keeps its share of Adam's moments (ZeRO stage 1): less memory"});
    v("rank_timeout", rank_timeout, {.low = 0.1, .high = 1e6},
      {.group = kRanks,
       .help =
           "Seconds without an answer after which a rank counts as lost and all stop; more than learning the "
           "tokenizer and writing a checkpoint take"});
    v("validate_every", validate_every, {.low = 1, .high = 1'000'000'000},
      {.group = kValidation,
       .help = "Updates between validations (loss, perplexity, and BLEU with sacreBLEU's tokenizer 13a)"});
    v("validate_beam", validate_beam, {.low = 0, .high = 64},
      {.group = kValidation, .help = "Beam size of the translations that BLEU scores; 0: no translations"});
    v("metric", metric, {{"loss", Metric::kLoss}, {"bleu", Metric::kBleu}},
      {.group = kValidation,
       .help = "Which checkpoint is the best: that of the lowest loss or of the highest BLEU"});
    v("patience", patience, {.low = 0, .high = 1'000'000},
      {.group = kValidation, .help = "Stop after this many validations without a new best; 0: never"});
    v("save_every", save_every, {.low = 0, .high = 1'000'000'000},
      {.group = kCheckpoints, .help = "Updates between checkpoints; 0: one at every validation"});
    v("keep", keep, {.low = 1, .high = 1'000'000},
      {.group = kCheckpoints, .help = "Newest checkpoints to keep, besides those needed for `average`"});
    v("average", average, {.low = 1, .high = 10'000},
      {.group = kCheckpoints,
       .help = "The final model is the mean of this many checkpoints (which: --average-of)"});
    v("average_of", average_of, {{"last", AverageOf::kLast}, {"best", AverageOf::kBest}},
      {.group = kCheckpoints, .help = "Which checkpoints are averaged: the last or the best"});
    v("log_every", log_every, {.low = 1, .high = 1'000'000'000},
      {.group = kCheckpoints, .help = "Updates between lines of metrics.jsonl"});
  }
};

/// Fills in what was not given: from the preset, or as other settings imply. Throws UsageError on an
/// unknown preset.
TranslatorSettings resolved(TranslatorSettings settings);
/// Throws UsageError on settings that are missing, out of their range, or contradict each other.
void check_settings(const TranslatorSettings& settings);

/// The model's shape. REQUIRES: settings are resolved.
TranslatorShape model_shape(const TranslatorSettings& settings, int32_t vocabulary_size,
                            int32_t target_vocabulary_size);

/// Returns the settings that must stay the same when a run resumes, as text, because they decide what is
/// learned. These may change: paths (the contents are compared instead), the length of the run (unless the
/// schedule depends on it), and how many checkpoints are kept. REQUIRES: settings are resolved.
std::vector<Setting> fixed_settings(const TranslatorSettings& settings);

}  // namespace mh

#include "cli/train_help.h"

#include <fmt/format.h>

#include <map>

#include "multihead/nn/head_geometry.h"

namespace mh::cli {
namespace {

constexpr const char* kText = "Text";
constexpr const char* kTokens = "Tokenizer";
constexpr const char* kShape = "Model";
constexpr const char* kHeads = "Heads";
constexpr const char* kLearning = "Learning";
constexpr const char* kValidation = "Validation";
constexpr const char* kCheckpoints = "Checkpoints";

std::string names_of_geometries() {
  std::string names;
  for (const GeometryName& geometry : geometry_names())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", geometry.name);
  return names;
}

}  // namespace

const TrainHelp& train_help(std::string_view setting) {
  static const std::map<std::string_view, TrainHelp> kHelps = {
      {"train_source", {kText, "Training text to translate from, a sentence a line, plain or gzip"}},
      {"train_target", {kText, "Its translation, line by line"}},
      {"valid_source", {kText, "Validation text to translate from"}},
      {"valid_target", {kText, "Its translation"}},
      {"model", {kText, "Folder to make; when a run was stopped there, it goes on"}},
      {"tokenizer", {kTokens, "Use this tokenizer.json; without it one is learned on the training text"}},
      {"vocabulary_size", {kTokens, "Tokens to learn, at most"}},
      {"separate_vocabularies", {kTokens, "A vocabulary for each side, instead of a joint one"}},
      {"word_level", {kTokens, "Whole words between spaces, instead of byte-pair encoding"}},
      {"lowercase", {kTokens, "Lower-case all text"}},
      {"normalization", {kTokens, "Unicode normal form"}},
      {"max_length", {kTokens, "Longest sentence in tokens; longer pairs are left out and counted"}},
      {"preset",
       {kShape,
        "tiny, small, base, big, or a row of Table 3 of \"Attention is all you need\", such as base-h16, "
        "base-dk16, base-n2, base-d256, base-dff1024, base-dropout0, base-smoothing0 or base-learned; "
        "tiny-h1, tiny-dk8, ... are the same in miniature"}},
      {"d_model", {kShape, "Width"}},
      {"d_ff", {kShape, "Width inside feed-forward layers"}},
      {"encoder_layers", {kShape, "Layers of the encoder"}},
      {"decoder_layers", {kShape, "Layers of the decoder"}},
      {"heads", {kShape, "Heads of each attention"}},
      {"geometry",
       {kHeads, fmt::format("How heads read and write: a file *.json, JSON such as "
                            "'{{\"scores\":\"merged\"}}', or a name: {}",
                            names_of_geometries())}},
      {"d_key", {kHeads, "Numbers in a head's query and key"}},
      {"d_value", {kHeads, "Numbers in a head's value"}},
      {"key_heads", {kHeads, "Heads of keys, a divisor of --heads: that many share keys"}},
      {"value_heads", {kHeads, "Heads of values, likewise"}},
      {"head_input", {kHeads, "What a head sees of a row"}},
      {"segments",
       {kHeads, "Heads see segments of the row: a permuted slice, spread segments, random columns"}},
      {"segment_size", {kHeads, "Columns of a spread or random segment"}},
      {"scores", {kHeads, "How scores come about"}},
      {"shared_size", {kHeads, "Width of the queries and keys that collaborative scores share"}},
      {"qk_norm", {kHeads, "Scores are a learned number times the cosine of query and key"}},
      {"head_weights",
       {kHeads, "One softmax, the difference of two, or softmaxes of heads that talk (slow)"}},
      {"biases", {kHeads, "Of the projections"}},
      {"head_output", {kHeads, "The heads' outputs times W^O, or as they are"}},
      {"scale", {kHeads, "Of scores, instead of 1 / sqrt(d_key)"}},
      {"initialisation", {kHeads, "How the projections start"}},
      {"positions", {kHeads, "How order is known"}},
      {"disagreement", {kLearning, "Make heads differ in their values, their weights or their outputs"}},
      {"disagreement_weight", {kLearning, "Its weight in the loss"}},
      {"norm", {kShape, "Layer norm after (the paper) or before each sub-layer"}},
      {"activation", {kShape, "Of feed-forward layers"}},
      {"dropout", {kShape, "Of sub-layers' outputs and embeddings"}},
      {"attention_dropout", {kShape, "Of attention weights"}},
      {"activation_dropout", {kShape, "Inside feed-forward layers"}},
      {"embedding_init", {kShape, "Embeddings begin as N(0, x^2 / d_model) for this x"}},
      {"init_from", {kShape, "Begin with the weights of this model folder"}},
      {"updates", {kLearning, "Stop after this many; 0: no limit"}},
      {"epochs", {kLearning, "Stop after this many passes over the text; 0: no limit"}},
      {"batch_tokens", {kLearning, "Tokens of a batch, at most"}},
      {"batch_count", {kLearning, "Count the target's tokens, or both sides padded as others do"}},
      {"accumulate", {kLearning, "Batches that make one update"}},
      {"learning_rate", {kLearning, "Peak of the schedule"}},
      {"warmup", {kLearning, "Updates until the peak"}},
      {"schedule", {kLearning, "Then the rate falls as 1/sqrt(update), or in a line to 0 at --updates"}},
      {"label_smoothing", {kLearning, "Share of the target spread over the vocabulary"}},
      {"adam_beta1", {kLearning, "Memory of Adam's first moment"}},
      {"adam_beta2", {kLearning, "Memory of Adam's second moment"}},
      {"adam_epsilon", {kLearning, "Adam's epsilon"}},
      {"weight_decay", {kLearning, "Decoupled, of matrices"}},
      {"clip_norm", {kLearning, "Largest norm of the gradient; 0: any"}},
      {"seed", {kLearning, "Of weights, batches and dropout"}},
      {"validate_every", {kValidation, "Updates between validations"}},
      {"validate_beam", {kValidation, "Beam of the translations for BLEU; 0: no translations"}},
      {"metric", {kValidation, "What is better: lower loss or higher BLEU"}},
      {"patience", {kValidation, "Stop after this many validations without a better one; 0: never"}},
      {"save_every", {kCheckpoints, "Updates between checkpoints; 0: with every validation"}},
      {"keep", {kCheckpoints, "Newest checkpoints to keep, besides those that averaging needs"}},
      {"average", {kCheckpoints, "The final model is the mean of this many checkpoints"}},
      {"average_of", {kCheckpoints, "Which ones: the last or the best"}},
      {"log_every", {kCheckpoints, "Updates between lines of metrics.jsonl"}},
  };
  return kHelps.at(setting);
}

}  // namespace mh::cli

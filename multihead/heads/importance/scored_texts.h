// ScoredTexts: a corpus with what a model is to say of each sentence. A sentence's score is what the kind of model has:
//
//   a translator                    log p(translation | source), its end token with it
//   a causal model                  log p of each token after the first, given those before it, summed
//   an encoder that predicts words  log p of the words behind masks: about 15 % of the sentence's tokens are masked at once
//                                   (Devlin et al. 2019), special tokens never, at least one, chosen by the seed
//   a classifier                    the logit of a label: the one that is asked for, else the one with the largest logit; of a
//                                   classifier of tokens the sum over the tokens that are not special
//   any other                       the cosine of the sentence's vector to another vector
//
// Logarithms are natural.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/corpus/observe_heads.h"

namespace mh {

enum class ScoreKind { kTranslation, kNextTokens, kMaskedWords, kLabels, kVectors };
inline constexpr EnumNames<ScoreKind> kScoreKindNames = {{"translation", ScoreKind::kTranslation},
                                                         {"next-tokens", ScoreKind::kNextTokens},
                                                         {"masked-words", ScoreKind::kMaskedWords},
                                                         {"labels", ScoreKind::kLabels},
                                                         {"vectors", ScoreKind::kVectors}};

/// What can be scored of a model.
ScoreKind score_kind(const ModelFolder& folder);

struct ScoredText {
  int64_t number = 0;                // in the list that the corpus is, from 0; blank lines count
  std::vector<int32_t> ids = {};     // what the encoder or the causal model reads; masks in their places
  std::vector<int32_t> types = {};   // of pairs (batch/batch.h); empty: all of type 0
  std::vector<int32_t> target = {};  // of a translator, without end token
  std::vector<int32_t> rows = {};    // the rows of the text, or of the target, that predict something
  std::vector<int32_t> tokens = {};  // what they should predict; of a classifier their labels

  /// What counts against the size of a batch.
  int64_t size() const;
};

struct ScoredTexts {
  ScoreKind kind = ScoreKind::kVectors;
  CorpusRead read = {};
  std::vector<ScoredText> texts = {};

  /// How many tokens, or labels, are predicted.
  int64_t predictions() const;
};

/// The title under which help lists the settings of importance.
inline constexpr const char* kImportanceGroup = "Importance";

struct ScoredTextsOptions {
  double masked = 0.15;
  uint64_t seed = 1;
  /// Of a classifier: whose logit scores a text, by its name or number; empty: the one with the largest logit.
  std::string label = {};
  ObserveHeadsOptions read = {};

  template <class V>
  void visit(V& v) {
    v("masked", masked, {.low = 0.001, .high = 1},
      {.group = kImportanceGroup,
       .help = "Share of the words that a model of masked words predicts",
       .rare = true});
    v("seed", seed, {},
      {.group = kImportanceGroup, .help = "Seed of the masks and the random orders", .rare = true});
    v("label", label, {},
      {.group = kImportanceGroup,
       .help = "Label of a classifier whose logit is the score; without: the best one of each text",
       .value = "LABEL"});
    read.visit(v);
  }
};

/// Reads the corpus from where it is to its end; its token ids stay in memory. Sentences of which nothing can be predicted (a
/// causal model's of one token, none but special tokens) are left out, and a remark says how many and which first. Throws as CorpusReader does, FormatError when no sentence
/// is left, and UsageError where words are to be masked and the tokenizer has no mask token, on a label that is not there and of a
/// model that is no classifier.
ScoredTexts read_scored_texts(const ModelFolder& folder, HeadsCorpus& corpus,
                              const ScoredTextsOptions& options);

}  // namespace mh

// The logit lens: what a model's residual stream says after each of its layers. The stream x_l after layer l at a position is
// read by the model's own end, as if no layer came after it:
//
//   z_l = E end(x_l)        end: the last norm where there is one, the transform of a head for masked words; E, the output layer
//   p_l = softmax(z_l)      with its bias and soft cap: what the model computes of its last layer's output
//   entropy(p_l)            = - sum_v p_l(v) log p_l(v)                               nats
//   KL(p_end || p_l)        = sum_v p_end(v) log (p_end(v) / p_l(v))                  nats, 0 at the end
//   rank of v               = 1 + how many words are more probable (of equal ones the smaller number first)
//
// nostalgebraist 2020 ("interpreting GPT: the logit lens"); Belrose et al. 2023 ("Eliciting latent predictions from Transformers
// with the tuned lens") say where it misleads. A stream that does not say the word may hold it all the same: docs/heads/lens.md
//
//   const mh::LensReport lens = mh::heads_lens(folder, "The capital of France is", {.answer = "Paris", .position = -1});
//   for (size_t l = 0; l < lens.places.size(); ++l) lens.at(l, 0).best[0].token, lens.at(l, 0).answer->rank;
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/folders/labels.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/text/text_languages.h"

namespace mh {

class ScoredModel;

struct LensOptions {
  /// A word whose rank and log-probability are told in each place, of a classifier a label by its name or number. A word of
  /// several tokens counts by the first one. Empty: those of the token that the text has there, and of what the model
  /// predicts in the end.
  std::string answer = {};
  /// The token whose stream is read, counted from 0, below 0 from the end (-1: the last); of a translator in what its decoder
  /// reads. None: all; of an encoder of a text with mask tokens these alone.
  std::optional<int> position = {};
  std::string target = {};  // a translator's translation; empty: its greedy one
  std::string pair =
      {};  // a second text that an encoder, such as a cross-encoder, reads as one sequence with the first
  bool sublayers = false;  // also read the sums after each attention; otherwise embeddings and layers
  int32_t words = 5;       // the most probable words that are told; labels are told all
  TextLanguages languages = {};
  Sites* sites = nullptr;  // called in all passes, e.g. SiteValues that mute heads
  /// Hears that the text was cut, which words the tokenizer does not know, and of an answer of several tokens.
  std::function<void(const std::string&)> remark = nullptr;

  /// All but what is asked: answer, position, target and pair.
  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Lens";
    v("sublayers", sublayers, {},
      {.group = kGroup, .help = "Also read the sums after each attention; otherwise embeddings and layers"});
    v("words", words, {.low = 1, .high = 256},
      {.group = kGroup, .help = "How many of the most probable words a report has for each place"});
    languages.visit(v);
  }
};

/// Where the stream is read.
struct LensPlace {
  std::string site;  // "decoder.embeddings", "decoder.3.after_self_attention", "decoder.3.output"
  int layer = -1;    // -1: the embeddings
  /// "embed", "3 self", "3 cross", "3": short enough for a table.
  std::string name() const;
};

struct LensToken {
  int32_t id = 0;
  std::string token;  // as people read it; a label's name
};

/// A position whose stream is read, or a text, of which a classifier gives labels.
struct LensPosition {
  std::optional<int32_t> position = {};     // none: the text
  std::string token = {};                   // the token there, as people read it
  std::optional<LensToken> actual = {};     // what the text has where this position predicts; none: not known
  std::optional<LensToken> predicted = {};  // what the model predicts in the end
};

struct LensWord {
  int32_t id = 0;
  std::string token;  // as people read it; a label's name
  double score = 0;   // its probability; of a regression the logit (LensReport::scores)
};

struct LensRank {
  int64_t rank = 1;            // 1: the most probable
  double log_probability = 0;  // natural logarithm; of a regression the logit
};

/// What one place says at one position.
struct LensReading {
  std::vector<LensWord> best = {};      // best first; of a classifier all labels
  std::optional<LensRank> answer = {};  // LensOptions::answer
  std::optional<LensRank> actual = {},
                          predicted = {};  // of these tokens of the position, where no answer is asked for
  /// Of labels that exclude each other (LabelScores::kSoftmax), and of words.
  std::optional<double> entropy = {}, divergence = {};  // nats; divergence: KL(p_end || p_l)
};

/// Of a model that makes vectors: cosines of the vector that the end makes of a place's stream.
struct LensCosines {
  double own = 0;                     // with the text's own vector
  std::optional<double> second = {};  // with the vector of a second text
};

enum class LensSays { kWords, kLabels, kVectors };
inline constexpr EnumNames<LensSays> kLensSaysNames = {
    {"words", LensSays::kWords}, {"labels", LensSays::kLabels}, {"vectors", LensSays::kVectors}};

struct LensAnswer {
  std::string text;
  LensToken token;
  int64_t tokens = 1;  // that the word has
};

struct LensReport {
  LensSays says = LensSays::kWords;
  LabelScores scores = LabelScores::kSoftmax;
  std::string text = {}, pair = {}, second = {}, translation = {};
  std::optional<LensAnswer> answer = {};
  std::vector<LensPlace> places = {};        // in the order of the model; the last is the end
  std::vector<LensPosition> positions = {};  // in order; none of vectors
  std::vector<LensReading> readings = {};    // [places][positions]
  std::vector<LensCosines> cosines = {};     // [places]; of vectors alone

  const LensReading& at(size_t place, size_t position) const {
    return readings[place * positions.size() + position];
  }
};

/// Of a model that predicts words: of a causal model the next word of each position; of a translator that of each position of its
/// target; of an encoder the word in place of the mask tokens of the text, or without any that of every position. Of a classifier its labels. One pass that keeps the
/// streams, and the end of the model for each place. Throws UsageError on a model that does neither (take the function below), an
/// answer that has no tokens or is unknown, a position or label that is not there, a target or pair for a model that does not read it, an option
/// that cannot be, and sites that the model does not have; Error when something is not finite.
LensReport heads_lens(const ModelFolder& folder, const std::string& text, const LensOptions& options = {});
/// Of a model that makes vectors. second: a text whose vector each place's is compared with; empty: none. Throws UsageError, too, on an
/// answer, a position, a target and a pair, which are another model's.
LensReport heads_lens(const SentenceModel& model, const std::string& text, const std::string& second,
                      const LensOptions& options = {});
/// Of either. Throws UsageError, too, on a second text for a model that predicts words or gives labels.
LensReport heads_lens(const ScoredModel& model, const std::string& text, const std::string& second,
                      const LensOptions& options = {});

}  // namespace mh

// Steering: what a direction (direction.h) does at several strengths, and what it breaks. For each strength s, with s * direction added at
// every position of the direction's site:
//
//   log p(answer | text)               of each answer after each text, natural logarithms
//   loss = -1/N sum log p(token)       of N tokens of other text, and exp(loss), their perplexity
//
// The first is the effect, the second the damage: a large strength may make an answer likelier and everything else unlikely. What is
// asked, of each kind of model, is what patch_texts.h says: the word after the text, the target's next word after `prefix`, or
// the word at the mask. What other text is scored by is what scored_texts.h says: next tokens, translations with their
// ends, masked words. docs/heads/steer.md
//
//   const mh::SteerReport steering = mh::heads_steer(
//       model, direction, {.texts = {"The film was"}, .answers = {"good", "bad"}}, &other_corpus);
//   for (const mh::SteerDose& dose : steering.doses) dose.strength, dose.mean(0), dose.perplexity();
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/batch/batch_tokens.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/heads/steering/make_direction.h"

namespace mh {

/// Words that are asked for after texts.
struct SteerQuestion {
  std::vector<std::string> texts = {};
  std::vector<std::string> answers = {};  // words; of several tokens the first counts
  std::string prefix = {};                // of a translator: what its decoder has read
};

struct SteerOptions {
  DirectionOptions direction = {};  // languages, sites and remarks of all that is read
  std::vector<double> strengths = {-4, -2, -1, 0, 1, 2, 4};
  int64_t max_batch_tokens = 2048;                                    // of other text
  std::function<void(int64_t done, int64_t all)> progress = nullptr;  // strengths

  template <class V>
  void visit(V& v) {
    direction.visit(v);
    visit_batch_tokens(v, max_batch_tokens);
  }
};

/// A text, and the answers as tokens in their place after it.
struct SteeredText {
  PatchText text = {}, target = {};
  std::vector<PatchAnswer> answers = {};
};

struct SteerDose {
  double strength = 0;
  std::vector<std::vector<double>> log_probabilities = {};  // [texts][answers]
  std::optional<double> loss = {};                          // of other text, per token; none: there is none

  /// Of an answer over all texts.
  double mean(size_t answer) const;
  /// exp(loss); may be infinite.
  double perplexity() const;
};

struct SteerReport {
  SteerDirection direction = {};
  std::vector<SteeredText> texts = {};
  int64_t other_texts = 0, other_tokens = 0;  // tokens: that are predicted
  std::vector<SteerDose> doses = {};          // in the order of the strengths

  /// How many answers are asked for after each text.
  size_t answers() const { return texts.empty() ? 0 : texts[0].answers.size(); }
};

/// Of a causal model, a translator or an encoder that predicts masked words. other: text whose loss is measured; may be null. Throws
/// UsageError on a model that predicts no words, on a direction as check_direction() does (its weights are the caller's to check), on
/// no strengths and on one that is not finite, where neither answers nor other text are given, on texts without answers and answers
/// without texts, and as read_patch_texts() does; FormatError when no other text can be scored; Error when results are not finite.
SteerReport heads_steer(const ScoredModel& model, const SteerDirection& direction,
                        const SteerQuestion& question, HeadsCorpus* other, const SteerOptions& options = {});

}  // namespace mh

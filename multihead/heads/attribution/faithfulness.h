// How faithful attributions are, measured on a corpus: tokens are replaced in the order that a method gives them, and what the
// model says is watched (heads_attribution.h has the methods and F).
//
//   mh::FilesCorpus corpus({.input = "test.en"});
//   for (const mh::MethodFaithfulness& one : mh::faithfulness(folder, corpus).methods) ... one.deletion.mean ...
//
//   deletion     the tokens with the largest scores are replaced first. The area under F over the share of tokens that are
//                replaced, from 0 to 1, by trapezoids: the lower, the more faithful
//   insertion    all tokens are replaced at first, and those with the largest scores come back first. The area under F over
//                the share that has come back: the higher, the more faithful
//
// (Samek et al. 2017; Petsiuk et al. 2018.) Areas are in the units of F, natural logarithms or cosines, the mean of F over the way. Every order
// begins and ends with the same two numbers, so that areas can be compared without scaling. The floor is a random order; every
// method is compared with it sentence by sentence. Special tokens are never replaced, nor is a masked token that is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/interval.h"
#include "multihead/heads/attribution/heads_attribution.h"
#include "multihead/heads/corpus/heads_corpus.h"

namespace mh {

struct FaithfulnessOptions {
  /// Methods (empty: all), steps, max_batch_tokens and remark; F is that of the default token of each text.
  AttributionOptions attribution = {};
  int32_t points = 20;  // most steps of a curve: of more tokens several are replaced at once
  int32_t draws = 5;    // random orders of a sentence, whose mean is the floor
  uint64_t seed = 1;    // of these
  std::function<void(int64_t)> progress = nullptr;  // sentences that are done

  /// All settings of `multihead heads attribution`.
  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "A corpus";
    attribution.visit(v);
    v("points", points, {.low = 1, .high = 10'000},
      {.group = kGroup,
       .help = "Points of the curve; longer texts replace several tokens a point",
       .rare = true});
    v("draws", draws, {.low = 1, .high = 10'000},
      {.group = kGroup, .help = "Random orders of a sentence, the floor", .rare = true});
    v("seed", seed, {}, {.group = kGroup, .help = "Seed of random orders", .rare = true});
  }
};

struct MethodFaithfulness {
  std::optional<AttributionMethod> method = {};  // none: the random orders
  Interval deletion = {}, insertion = {};        // of the mean over sentences, 95 %
  Interval deletion_gain =
      {};  // random's deletion less this one's, sentence by sentence: above 0 where it beats chance
  Interval insertion_gain = {};  // this one's insertion less random's
  std::vector<double> deletions = {},
                      insertions = {};  // of each sentence, to compare methods sentence by sentence
};

struct Faithfulness {
  int64_t sentences = 0;
  int64_t left_out = 0;  // lines left out: fewer than two tokens to replace, too many for a flow, no text
  std::string source_replacement = {}, target_replacement = {};
  Interval score = {}, replaced_score = {};  // F of whole texts, and of those whose tokens are all replaced
  std::vector<MethodFaithfulness> methods = {};  // the random orders last
};

/// Lines without text on all sides are left out and not counted. Throws UsageError when no line can be asked, saying why the last one was not,
/// on a position, a token or a target in the options, and as heads_attribution() does on the model; FormatError as the corpus does.
Faithfulness faithfulness(const ModelFolder& folder, HeadsCorpus& corpus,
                          const FaithfulnessOptions& options = {});
/// Of pairs of texts (HeadsText::pairs): tokens of the first are replaced.
Faithfulness faithfulness(const SentenceModel& model, HeadsCorpus& corpus,
                          const FaithfulnessOptions& options = {});

/// The areas of one order, that of `scores` from the largest to the smallest (of equal ones the first token first), of a text.
struct FaithfulnessAreas {
  double deletion = 0, insertion = 0;
};
class ExplainedText;
FaithfulnessAreas faithfulness_areas(const ExplainedText& text, const std::vector<double>& scores, int points,
                                     int64_t batch_tokens);

}  // namespace mh

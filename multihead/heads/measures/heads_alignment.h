// Which heads of cross-attention align words: `multihead heads alignment`, by the measure of word_alignment.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "multihead/data/alignment.h"
#include "multihead/generate/align.h"
#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/measures/word_alignment.h"

namespace mh {

/// Heads that were chosen to align, and how their mean does.
struct ChosenAligners {
  AligningHeads heads = {};
  AlignmentScore score =
      {};  // of the mean of their weights, as if it were one head; its name and number say nothing
};

struct AlignmentReport {
  CorpusRead read = {};
  std::vector<AlignmentScore> aligners = {};  // AlignmentScorer::scores()
  AlignmentScore baseline = {};               // the best fixed offset
  std::optional<ChosenAligners> chosen =
      {};  // of heads_alignment_without_gold(), whose scores are by its own reference
};

/// The corpus needs targets and alignments. Throws UsageError when it has none or they link no words, and as observe_heads() does.
AlignmentReport heads_alignment(const ModelFolder& folder, HeadsCorpus& corpus,
                                const ObserveHeadsOptions& options = {});

// Without gold alignments heads are compared with a reference that the model itself gives: which source word, left out, costs a
// target word most (left_out_words.h, after Li et al. 2019). A target word has no link where no word costs it more than
// kLeastFall. The heads that are chosen are the first n of those with the lowest error rates by this reference, for one
// AlignedQuery: the n up to kMostAligningHeads whose mean has the lowest (ties: the fewest).

inline constexpr float kLeastFall = 0.1f;  // nats
inline constexpr int kMostAligningHeads = 4;
/// A source of more words is left out: its cost rises with their square.
inline constexpr int32_t kMostWordsLeftOut = 100;

/// While a text is translated, where each pair costs time, heads are chosen from the shortest so many of the first so many lines. The
/// passes without each word of a pair read all of its words, so a word of a short pair costs less and says as much.
inline constexpr size_t kLinesToChooseFrom = 100, kShortestLines = 60;

struct WithoutGoldOptions {
  ObserveHeadsOptions read = {};
  int64_t pairs = 200;  // that heads are chosen from: the first ones that have text
};

/// Alignments of the corpus are not read; without targets the model's greedy translations are aligned. Throws UsageError on a model
/// that does not translate, when no pair has words to leave out, and when that costs no word anything; and as observe_heads() does.
AlignmentReport heads_alignment_without_gold(const ModelFolder& folder, HeadsCorpus& corpus,
                                             const WithoutGoldOptions& options = {});

/// Aligns the words of every line of a corpus, which is read from its beginning; a line without text has no links. Throws UsageError
/// on heads that the model does not have, and as observe_heads() does.
std::vector<Alignment> align_words(const ModelFolder& folder, HeadsCorpus& corpus, const AligningHeads& heads,
                                   const ObserveHeadsOptions& options = {});

/// The same choice by tokens in place of words, of the first pairs that have any. Sources have their end token, targets do not. Tokens
/// with which all sources begin, or all targets, stand for no word: codes of languages, the prefix of a task. Of the options only
/// observe and pairs count.
ChosenAligners choose_aligners(const LanguageModel& model, std::span<const std::vector<int32_t>> sources,
                               std::span<const std::vector<int32_t>> targets,
                               const WithoutGoldOptions& options = {});

/// What TranslateOptions::align should be for these sources: the folder's alignment_heads, or else choose_aligners() of the shortest of
/// the first sources, with what `translate` makes of those, whose numbers it gets. Where nothing can be chosen, options.remark hears
/// why, and the mean of the last layer's heads is taken. Throws UsageError on alignment_heads that the model does not have.
AlignOptions aligners_for(
    const ModelFolder& folder, std::span<const std::vector<int32_t>> sources,
    const ObserveHeadsOptions& options,
    const std::function<std::vector<std::vector<Hypothesis>>(std::span<const int64_t> numbers)>& translate);

}  // namespace mh

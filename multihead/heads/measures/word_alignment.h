// Finds the heads of cross-attention that align words: compares the largest weight of each target word with
// alignments that were made by hand or by a grammar.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/data/alignment.h"
#include "multihead/heads/measures/observe_corpus.h"
#include "multihead/heads/measures/words.h"

namespace mh {

/// The word alignments of a corpus, and the tokens of its words. Sentence i of the corpus is entry i of
/// each list.
struct GoldAlignments {
  std::vector<Alignment> alignments;
  std::vector<WordOfToken> source_words, target_words;  // of each token; the target without its end token
  std::vector<int32_t> source_sizes, target_sizes;      // in words

  bool empty() const { return alignments.empty(); }
};

/// Which query stands for target word t: the one that predicts it, or the one that has just read it.
enum class AlignedQuery { kPredicts, kReads };

struct AlignmentScore {
  std::string attention;  // empty for the baseline, the best fixed offset
  int head = 0;
  AlignedQuery query = AlignedQuery::kPredicts;
  int offset = 0;       // of the baseline: source word = target word + offset
  int64_t support = 0;  // target words that have links in the gold alignment
  int64_t found = 0;    // of these: words whose largest weight is on a word that they are aligned to
  int64_t made = 0;   // links predicted: one for each target word, none if the end token has the most weight
  int64_t right = 0;  // of these: links of the gold alignment
  int64_t gold = 0;   // links of the gold

  std::string name() const { return attention + "." + std::to_string(head); }
  double accuracy() const {
    return support > 0 ? static_cast<double>(found) / static_cast<double>(support) : 0;
  }
  /// The alignment error rate, 1 - 2 |A and G| / (|A| + |G|), where all gold links count as sure
  /// (Och and Ney 2003): 0 is best.
  double error_rate() const {
    return made + gold > 0 ? 1 - 2 * static_cast<double>(right) / static_cast<double>(made + gold) : 1;
  }
};

class AlignmentScorer : public CorpusObserver {
 public:
  /// REQUIRES: `gold` outlives this.
  explicit AlignmentScorer(const GoldAlignments& gold);

  bool wants_weights(std::string_view name) const override;
  void weights(const BatchWeights& batch) override;

  /// Two scores (kPredicts, kReads) for every head of every cross-attention, sorted by layer.
  std::vector<AlignmentScore> scores() const;
  /// The score of the best fixed offset for all words.
  AlignmentScore baseline() const;

 private:
  const GoldAlignments& gold_;
  std::map<int, std::vector<AlignmentScore>> scores_;  // by layer
};

/// Returns the score with the lowest error rate (ties: the first). REQUIRES: scores are not empty.
AlignmentScore best_aligner(std::span<const AlignmentScore> scores);

}  // namespace mh

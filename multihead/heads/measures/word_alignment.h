// Finds the heads of cross-attention that align words: compares the largest weight of each target word with
// alignments that were made by hand or by a grammar.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/data/alignment.h"
#include "multihead/generate/search.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/heads/sites/words.h"

namespace mh {

struct GoldAlignments;

struct AlignmentScore {
  static constexpr int kMeanOfHeads = -1;

  std::string attention;  // empty for the baseline, the best fixed offset
  /// kMeanOfHeads: the mean of the layer's heads, as if it were one.
  int head = 0;
  AlignedQuery query = AlignedQuery::kPredicts;
  int offset = 0;       // of the baseline: source word = target word + offset
  int64_t support = 0;  // target words that have links in the gold alignment
  int64_t found = 0;    // of these: words whose largest weight is on a word that they are aligned to
  int64_t made = 0;   // links predicted: one for each target word, none if the end token has the most weight
  int64_t right = 0;  // of these: links of the gold alignment
  int64_t gold = 0;   // links of the gold

  /// Adds a sentence. source_of[t]: the source word that target word t goes with; -1: none.
  void add(std::span<const int32_t> source_of, const Alignment& alignment);
  std::string name() const {
    return attention + "." + (head == kMeanOfHeads ? std::string("mean") : std::to_string(head));
  }
  /// Of the links that were made, and of those of the gold alignment: the share that is right.
  double precision() const { return made > 0 ? static_cast<double>(right) / static_cast<double>(made) : 0; }
  double recall() const { return gold > 0 ? static_cast<double>(right) / static_cast<double>(gold) : 0; }
  double accuracy() const {
    return support > 0 ? static_cast<double>(found) / static_cast<double>(support) : 0;
  }
  /// The alignment error rate, 1 - 2 |A and G| / (|A| + |G|), where all gold links count as sure
  /// (Och and Ney 2003): 0 is best.
  double error_rate() const {
    return made + gold > 0 ? 1 - 2 * static_cast<double>(right) / static_cast<double>(made + gold) : 1;
  }
};

/// The source word that each target word looks at most, by weights of tokens [queries, keys]; -1: none, because the keys that are no
/// word have more, or the word was cut. word_of_query: words_of_queries().
std::vector<int32_t> strongest_sources(ConstMatrixView weights, const WordOfToken& word_of_query,
                                       int32_t query_words, const WordOfToken& word_of_key);
/// The word that each row of the decoder stands for, which reads the start token and the target. target_words: of each token of
/// the target.
WordOfToken words_of_queries(const WordOfToken& target_words, AlignedQuery query);

class AlignmentScorer : public CorpusObserver {
 public:
  void begin(const CorpusBlock& block) override;
  bool wants_weights(const Model::Attention& attention) const override;
  void weights(const BatchWeights& batch) override;

  /// Two scores (kPredicts, kReads) for every head of every cross-attention, sorted by layer, and for the mean of the heads of
  /// each that has several.
  std::vector<AlignmentScore> scores() const;
  /// The score of the best fixed offset for all words; none without alignments.
  std::optional<AlignmentScore> baseline() const;

 private:
  const GoldAlignments* gold_ = nullptr;               // of the block
  std::map<int, std::vector<AlignmentScore>> scores_;  // by layer
  // Of the fixed offsets: source word - target word.
  std::map<std::pair<int32_t, int32_t>, int64_t> sentences_of_sizes_;  // in source and target words
  std::map<int, int64_t> links_at_offset_;
  int64_t links_ = 0, linked_words_ = 0;
};

/// Returns the score of a single head, not of their mean, with the lowest error rate (ties: the first). REQUIRES: there is one.
AlignmentScore best_aligner(std::span<const AlignmentScore> scores);

}  // namespace mh

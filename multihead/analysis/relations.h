// Which head goes along which grammatical relation: "from a verb to its object".
//
// After Clark, Khandelwal, Levy and Manning 2019, "What does BERT look at?", section 4: weights are merged
// from pieces to words, a word's own weight and that on special tokens are set aside, and a word's prediction
// is the word it reads most. Beside each score stands what the best fixed offset ("the word two to the left")
// scores on the same words.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/analysis/attention_name.h"
#include "multihead/analysis/observe_corpus.h"
#include "multihead/analysis/words.h"
#include "multihead/data/tree_bank.h"

namespace mh {

/// Trees of a corpus with the tokens that its words became. Sentence i of the corpus is entry i of both.
struct GoldTrees {
  std::vector<std::vector<Word>> trees;
  std::vector<WordOfToken> word_of_token;  // an entry for each token that the model reads

  bool empty() const { return trees.empty(); }
};

enum class Direction {
  kToHead,       // each word with this relation: is its head the word it reads most?
  kToDependent,  // each word that has such dependents: is one of them the word it reads most?
  kReadByHead,  // each word with this relation: of all words, is it its head that reads it most? This is what
                // Clark et al. count for "head to dependent".
};

struct RelationScore {
  std::string attention;
  int head = 0;
  std::string relation;  // "obj"
  Direction direction = Direction::kToHead;
  int64_t support = 0;  // words asked
  int64_t found = 0;    // words that were right
  int offset = 0;       // the best fixed offset, in words
  int64_t found_at_offset = 0;

  std::string name() const { return attention + "." + std::to_string(head); }
  double score() const { return support > 0 ? static_cast<double>(found) / static_cast<double>(support) : 0; }
  double baseline() const {
    return support > 0 ? static_cast<double>(found_at_offset) / static_cast<double>(support) : 0;
  }
  double gain() const { return score() - baseline(); }
};

/// For each word the other word that it reads most, and the one that reads it most; -1: none. weights:
/// between words [words, words] (merge_to_words()).
struct MostRead {
  std::vector<int> reads, read_by;
};
MostRead most_read(const Tensor& weights);

/// Scores the self-attentions of the encoder against the source's trees and those of the decoder against the
/// target's. Query i of the decoder counts for the word it reads, which is target token i - 1.
class RelationScorer : public CorpusObserver {
 public:
  /// Either may be empty: then that side is not scored. In target.word_of_token the end token does not
  /// appear.
  RelationScorer(const GoldTrees& source, const GoldTrees& target);

  void begin_batch(std::span<const int64_t> sentences) override;
  bool wants_weights(std::string_view name) const override;
  void weights(const ObservedWeights& observed) override;

  /// Every head for every relation and direction, by kind of attention, layer, head and relation's name.
  std::vector<RelationScore> scores() const;

 private:
  using Task = std::pair<std::string, Direction>;
  struct Baseline {
    int64_t support = 0;
    std::map<int, int64_t> found;  // by offset
  };
  struct Side {
    const GoldTrees* gold = nullptr;
    std::map<Task, Baseline> tasks;
    std::map<Task, size_t> number;
  };
  struct Counts {
    std::string attention;
    int heads = 0;
    std::vector<int64_t> found;  // [heads, tasks]
  };
  static Side make_side(const GoldTrees& gold);
  const Side& side(AttentionKind kind) const {
    return kind == AttentionKind::kEncoderSelf ? source_ : target_;
  }

  Side source_, target_;
  std::vector<int64_t> batch_;
  std::map<std::pair<AttentionKind, int>, Counts> counts_;
};

/// For each relation and direction the head with the best score (ties: the first), by falling support.
/// Relations with less than `least_support` words are left out.
std::vector<RelationScore> best_heads(std::span<const RelationScore> scores, int64_t least_support = 1);

}  // namespace mh

// Finds heads that follow a grammatical relation, e.g. a head in which an object reads its verb most.
//
// After Clark, Khandelwal, Levy and Manning 2019, "What does BERT look at?", section 4: weights of tokens
// are merged to weights of words, a word's weight on itself and on special tokens is ignored, and a word's
// prediction is the word that it reads most, i.e. with the largest weight. Each score is compared with that
// of the best fixed offset ("the word two to the left") on the same words.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/data/tree_bank.h"
#include "multihead/heads/attention_name.h"
#include "multihead/heads/measures/observe_corpus.h"
#include "multihead/heads/measures/words.h"

namespace mh {

/// The dependency trees of a corpus, and the tokens of its words. Sentence i of the corpus is entry i of
/// both.
struct GoldTrees {
  std::vector<std::vector<Word>> trees;
  std::vector<WordOfToken> word_of_token;  // an entry for each token that the model reads, a start token too

  bool empty() const { return trees.empty(); }
};

enum class Direction {
  kToHead,       // of the words with this relation: those that read their head most
  kToDependent,  // of the words that have such a dependent: those that read one of these most
  kReadByHead,   // of the words with this relation: those that their head, of all words, reads most. Clark et
                 // al. count this for "head to dependent".
};

struct RelationScore {
  std::string attention;
  int head = 0;
  std::string relation;  // "obj"
  Direction direction = Direction::kToHead;
  int64_t support = 0;  // words that have this relation, or such a dependent
  int64_t found = 0;    // words whose prediction was right
  int offset = 0;       // the best fixed offset, in words
  int64_t found_at_offset = 0;

  std::string name() const { return attention + "." + std::to_string(head); }
  double score() const { return support > 0 ? static_cast<double>(found) / static_cast<double>(support) : 0; }
  double baseline() const {
    return support > 0 ? static_cast<double>(found_at_offset) / static_cast<double>(support) : 0;
  }
  double gain() const { return score() - baseline(); }
};

/// Which edges of a tree heads can follow.
enum class ReadableEdges {
  kAll,
  kEarlier,  // where the word that is read comes before the word that reads it: under a causal mask
};

/// For each word the other word that it reads most, and the other word that reads it most; -1: none.
/// weights: [words, words], from merge_to_words().
struct MostRead {
  std::vector<int> reads, read_by;
};
MostRead most_read(const Tensor& weights);

/// Scores the self-attentions of the encoder with the trees of the source, and those of the decoder with
/// the trees of the target. A decoder reads earlier words alone, so there an edge counts, for heads and for fixed
/// offsets, only when the word to be read is the earlier of its two words.
class RelationScorer : public CorpusObserver {
 public:
  /// Either may be empty; then that side is not scored.
  RelationScorer(const GoldTrees& source, const GoldTrees& target);

  bool wants_weights(std::string_view name) const override;
  void weights(const BatchWeights& batch) override;

  /// The scores of every head for every relation and direction, sorted by kind of attention, layer, head
  /// and name of the relation.
  std::vector<RelationScore> scores() const;

 private:
  using Task = std::pair<std::string, Direction>;
  struct Baseline {
    int64_t support = 0;
    std::map<int, int64_t> found;  // by offset
  };
  struct Side {
    const GoldTrees* gold = nullptr;
    ReadableEdges edges = ReadableEdges::kAll;
    std::map<Task, Baseline> tasks;
    std::map<Task, size_t> number;
  };
  struct Counts {
    std::string attention;
    int heads = 0;
    std::vector<int64_t> found;  // [heads, tasks]
  };
  static Side make_side(const GoldTrees& gold, ReadableEdges edges);
  const Side& side(AttentionKind kind) const {
    return kind == AttentionKind::kEncoderSelf ? source_ : target_;
  }

  Side source_, target_;
  std::map<std::pair<AttentionKind, int>, Counts> counts_;
};

/// Returns for each relation and direction the head with the best score (ties: the first), sorted by
/// falling support. Relations with fewer than `least_support` words are left out.
std::vector<RelationScore> best_heads(std::span<const RelationScore> scores, int64_t least_support = 1);

}  // namespace mh

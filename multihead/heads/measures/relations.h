// Finds heads that follow a grammatical relation, e.g. a head in which an object reads its verb most.
//
// After Clark, Khandelwal, Levy and Manning 2019, "What does BERT look at?", section 4: weights of tokens
// are merged to weights of words, a word's weight on itself and on special tokens is ignored, and a word's
// prediction is the word that it reads most, i.e. with the largest weight. Each score is compared with that
// of the best fixed offset ("the word two to the left") on the same words.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/interval.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/nn/attention_place.h"

namespace mh {

struct GoldTrees;

enum class Direction {
  kToHead,       // of the words with this relation: those that read their head most
  kToDependent,  // of the words that have such a dependent: those that read one of these most
  kReadByHead,   // of the words with this relation: those that their head, of all words, reads most. Clark et
                 // al. count this for "head to dependent".
};

/// Sentences take turns in so many folds, of which an interval is made; heads are chosen on the even folds and scored on the odd
/// ones, so that a score is not the best of many on the same words.
constexpr int kRelationFolds = 20;
enum class CorpusHalf { kBoth, kChosenOn, kScoredOn };
/// Whether the sentence of this number is in the half.
bool in_half(int64_t sentence, CorpusHalf half);
/// The relation under which all are counted together, of each direction but kToDependent: "all".
inline constexpr std::string_view kAllRelations = "all";

struct RelationScore {
  std::string attention;
  AttentionPlace place = {};
  int head = 0;
  std::string relation;  // "obj"
  Direction direction = Direction::kToHead;
  int64_t support = 0;  // words that have this relation, or such a dependent
  int64_t found = 0;    // words whose prediction was right
  int offset = 0;       // the best fixed offset, in words
  int64_t found_at_offset = 0;
  Interval interval = {}, gain_interval = {};  // of score() and gain(), from the folds

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

/// For each word that is read the other word that it reads most, and the other word that reads it most; -1: none.
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
  void begin(const CorpusBlock& block) override;
  bool wants_weights(const Model::Attention& attention) const override;
  void weights(const BatchWeights& batch) override;

  /// The scores of every head for every relation and direction, sorted by kind of attention, layer, head
  /// and name of the relation. The offset is the best one on the same half.
  std::vector<RelationScore> scores(CorpusHalf half = CorpusHalf::kBoth) const;
  /// For each relation and direction the head, and the offset, that is best on one half of the sentences, with its counts
  /// and intervals on the other; encoder and decoder each have theirs, sorted by falling support. Relations with fewer
  /// than `least_support` words on either half are left out. All relations together come first, as kAllRelations.
  std::vector<RelationScore> chosen_and_scored(int64_t least_support = 1) const;

 private:
  using Task = std::pair<std::string, Direction>;
  using Folds = std::array<int64_t, kRelationFolds>;
  struct TaskCounts {
    Folds support{};
    std::map<int, Folds> found_at_offset;
  };
  struct Side {
    explicit Side(ReadableEdges which) : edges(which) {}
    ReadableEdges edges;
    const GoldTrees* gold = nullptr;  // of the block
    int64_t first = 0;                // sentences before it
    std::map<Task, size_t> number;
    std::vector<TaskCounts> tasks;  // by number
  };
  struct Counts {
    std::string attention;
    AttentionPlace place = {};
    int heads = 0;
    std::vector<Folds> found;  // [tasks, heads]
    Folds of(size_t task, int head) const;
  };
  static void count_tasks(Side& side);
  static RelationScore score(const Counts& counts, int head, const Task& task, const TaskCounts& of_task,
                             const Folds& found, CorpusHalf half, int offset);
  /// Of several tasks together.
  std::optional<RelationScore> chosen(const Side& of, const Task& task, const std::vector<size_t>& numbers,
                                      int64_t least_support) const;
  static int best_offset(const TaskCounts& task, CorpusHalf half);
  const Side& side(AttentionKind kind) const {
    return kind == AttentionKind::kEncoderSelf ? source_ : target_;
  }

  Side source_{ReadableEdges::kAll}, target_{ReadableEdges::kEarlier};
  std::map<std::pair<AttentionKind, int>, Counts> counts_;
};

/// Returns for each relation and direction the head with the best score (ties: the first), sorted by
/// falling support. Relations with fewer than `least_support` words are left out.
std::vector<RelationScore> best_heads(std::span<const RelationScore> scores, int64_t least_support = 1);

}  // namespace mh

#include "multihead/heads/measures/relations.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"

namespace mh {
namespace {

/// Calls body(word, relation) for each right answer of a tree: which words are asked about a relation, and
/// what is right.
template <class Body>
void for_each_edge(std::span<const Word> tree, ReadableEdges edges, Body&& body) {
  for (size_t w = 0; w < tree.size(); ++w) {
    if (tree[w].head < 0) continue;  // nothing to be read: the root has no head
    const auto dependent = static_cast<int>(w);
    const bool all = edges == ReadableEdges::kAll, head_is_earlier = tree[w].head < dependent;
    if (all || head_is_earlier) body(tree[w].relation, Direction::kToHead, dependent, tree[w].head);
    if (all || !head_is_earlier) {
      body(tree[w].relation, Direction::kToDependent, tree[w].head, dependent);
      body(tree[w].relation, Direction::kReadByHead, dependent, tree[w].head);
    }
  }
}

}  // namespace

MostRead most_read(const Tensor& weights) {
  const auto words = static_cast<size_t>(weights.rows());
  MostRead found{std::vector<int>(words, -1), std::vector<int>(words, -1)};
  std::vector<float> most_read(words), most_reading(words);
  for (size_t w = 0; w < words; ++w) {
    for (size_t v = 0; v < words; ++v) {
      const float weight = weights(static_cast<int64_t>(w), static_cast<int64_t>(v));
      if (v == w) continue;
      if (weight > most_read[w]) most_read[w] = weight, found.reads[w] = static_cast<int>(v);
      if (weight > most_reading[v]) most_reading[v] = weight, found.read_by[v] = static_cast<int>(w);
    }
  }
  return found;
}

RelationScorer::RelationScorer(const GoldTrees& source, const GoldTrees& target)
    : source_(make_side(source, ReadableEdges::kAll)), target_(make_side(target, ReadableEdges::kEarlier)) {}

RelationScorer::Side RelationScorer::make_side(const GoldTrees& gold, ReadableEdges edges) {
  MH_ASSERT(gold.trees.size() == gold.word_of_token.size());
  Side side;
  side.gold = &gold;
  side.edges = edges;
  for (const auto& tree : gold.trees) {
    std::set<std::tuple<std::string, Direction, int>> asked;
    std::set<std::tuple<std::string, Direction, int, int>> right;
    for_each_edge(tree, edges, [&](const std::string& relation, Direction direction, int word, int answer) {
      asked.emplace(relation, direction, word);
      right.emplace(relation, direction, word, answer - word);
    });
    for (const auto& [relation, direction, word] : asked) ++side.tasks[{relation, direction}].support;
    for (const auto& [relation, direction, word, offset] : right)
      ++side.tasks[{relation, direction}].found[offset];
  }
  for (const auto& [task, baseline] : side.tasks) side.number.emplace(task, side.number.size());
  return side;
}

bool RelationScorer::wants_weights(std::string_view name) const {
  const AttentionKind kind = attention_place(name).kind;
  return kind != AttentionKind::kCross && !side(kind).gold->empty();
}

void RelationScorer::weights(const BatchWeights& batch) {
  const AttentionPlace place = attention_place(batch.attention);
  const Side& gold = side(place.kind);
  Counts& counts = counts_[{place.kind, place.layer}];
  if (counts.heads == 0) {
    counts = {std::string(batch.attention), batch.heads(),
              std::vector<int64_t>(static_cast<size_t>(batch.heads()) * gold.tasks.size())};
  }
  MH_ASSERT(counts.heads == batch.heads());

  std::vector<std::vector<size_t>> hits(static_cast<size_t>(batch.sequences()));  // places in counts.found
  parallel_for(batch.sequences(), [&](int64_t s) {
    const auto sentence = static_cast<size_t>(batch.sentences[static_cast<size_t>(s)]);
    const std::vector<Word>& tree = gold.gold->trees[sentence];
    const WordOfToken& words = gold.gold->word_of_token[sentence];
    const auto size = static_cast<int64_t>(tree.size());
    for (int h = 0; h < batch.heads(); ++h) {
      const MostRead found =
          most_read(merge_to_words(batch.matrix(static_cast<int>(s), h), words, size, words, size));
      for_each_edge(tree, gold.edges,
                    [&](const std::string& relation, Direction direction, int word, int answer) {
                      const std::vector<int>& predictions =
                          direction == Direction::kReadByHead ? found.read_by : found.reads;
                      if (predictions[static_cast<size_t>(word)] != answer) return;
                      hits[static_cast<size_t>(s)].push_back(static_cast<size_t>(h) * gold.tasks.size() +
                                                             gold.number.at({relation, direction}));
                    });
    }
  });
  for (const auto& of_sentence : hits) {
    for (const size_t hit : of_sentence) ++counts.found[hit];
  }
}

std::vector<RelationScore> RelationScorer::scores() const {
  std::vector<RelationScore> all;
  for (const auto& [key, counts] : counts_) {
    const Side& gold = side(key.first);
    size_t at = 0;
    for (int h = 0; h < counts.heads; ++h) {
      for (const auto& [task, baseline] : gold.tasks) {
        const auto best = std::max_element(baseline.found.begin(), baseline.found.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        all.push_back({.attention = counts.attention,
                       .head = h,
                       .relation = task.first,
                       .direction = task.second,
                       .support = baseline.support,
                       .found = counts.found[at++],
                       .offset = best->first,
                       .found_at_offset = best->second});
      }
    }
  }
  return all;
}

std::vector<RelationScore> best_heads(std::span<const RelationScore> scores, int64_t least_support) {
  std::vector<RelationScore> best;
  for (const RelationScore& score : scores) {
    if (score.support < least_support) continue;
    const auto same = std::find_if(best.begin(), best.end(), [&](const RelationScore& other) {
      return other.relation == score.relation && other.direction == score.direction;
    });
    if (same == best.end()) {
      best.push_back(score);
    } else if (score.score() > same->score()) {
      *same = score;
    }
  }
  std::stable_sort(best.begin(), best.end(),
                   [](const RelationScore& a, const RelationScore& b) { return a.support > b.support; });
  return best;
}

}  // namespace mh

#include "multihead/heads/measures/relations.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/sites/words.h"

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

/// Each is scored for every head: a file in which words have relations of their own would take hours.
constexpr size_t kMostRelations = 1000, kDirections = 3;

size_t fold_of(int64_t sentence) {
  return static_cast<size_t>(sentence % kRelationFolds);
}

bool is_in(size_t fold, CorpusHalf half) {
  return half == CorpusHalf::kBoth || (fold % 2 == 0) == (half == CorpusHalf::kChosenOn);
}

using Folds = std::array<int64_t, kRelationFolds>;

void add(Folds& to, const Folds& counts) {
  for (size_t fold = 0; fold < to.size(); ++fold) to[fold] += counts[fold];
}

/// The folds of a half alone.
std::vector<int64_t> folds_of(const Folds& counts, CorpusHalf half) {
  std::vector<int64_t> kept;
  for (size_t fold = 0; fold < counts.size(); ++fold) {
    if (is_in(fold, half)) kept.push_back(counts[fold]);
  }
  return kept;
}

int64_t sum(const Folds& counts, CorpusHalf half) {
  const std::vector<int64_t> kept = folds_of(counts, half);
  return std::accumulate(kept.begin(), kept.end(), int64_t{0});
}

}  // namespace

bool in_half(int64_t sentence, CorpusHalf half) {
  return is_in(fold_of(sentence), half);
}

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

void RelationScorer::begin(const CorpusBlock& block) {
  source_.gold = &block.encoder_trees;
  target_.gold = &block.decoder_trees;
  for (Side* side : {&source_, &target_}) {
    side->first = block.first;
    count_tasks(*side);
  }
}

void RelationScorer::count_tasks(Side& side) {
  const GoldTrees& gold = *side.gold;
  MH_ASSERT(gold.trees.size() == gold.word_of_token.size());
  for (size_t s = 0; s < gold.trees.size(); ++s) {
    const size_t fold = fold_of(side.first + static_cast<int64_t>(s));
    std::set<std::tuple<std::string, Direction, int>> asked;
    std::set<std::tuple<std::string, Direction, int, int>> right;
    for_each_edge(gold.trees[s], side.edges,
                  [&](const std::string& relation, Direction direction, int word, int answer) {
                    asked.emplace(relation, direction, word);
                    right.emplace(relation, direction, word, answer - word);
                  });
    const auto counts = [&](const std::string& relation, Direction direction) -> TaskCounts& {
      const auto [found, is_new] = side.number.try_emplace({relation, direction}, side.tasks.size());
      if (is_new) side.tasks.emplace_back();
      if (is_new && side.number.size() > kMostRelations * kDirections)
        throw FormatError(fmt::format(
            "the trees have more than {} different relations, such as '{}'; Universal Dependencies "
            "have 37 and their subtypes: column 8 names them",
            kMostRelations, relation));
      return side.tasks[found->second];
    };
    for (const auto& [relation, direction, word] : asked) ++counts(relation, direction).support[fold];
    for (const auto& [relation, direction, word, offset] : right)
      ++counts(relation, direction).found_at_offset[offset][fold];
  }
}

bool RelationScorer::wants_weights(const Model::Attention& attention) const {
  const AttentionKind kind = attention.place.kind;
  return kind != AttentionKind::kCross && side(kind).gold != nullptr && !side(kind).gold->empty();
}

void RelationScorer::weights(const BatchWeights& batch) {
  const AttentionPlace place = batch.attention.place;
  const Side& gold = side(place.kind);
  Counts& counts = counts_[{place.kind, place.layer}];
  if (counts.heads == 0) counts = {batch.attention.name, place, batch.heads(), {}};
  MH_ASSERT(counts.heads == batch.heads());
  const auto heads = static_cast<size_t>(batch.heads());
  counts.found.resize(gold.tasks.size() * heads);

  std::vector<std::vector<size_t>> hits(static_cast<size_t>(batch.sequences()));  // places in counts.found
  parallel_for(batch.sequences(), [&](int64_t s) {
    const auto sentence = static_cast<size_t>(batch.sentences[static_cast<size_t>(s)]);
    const std::vector<Word>& tree = gold.gold->trees[sentence];
    const WordOfToken& words = gold.gold->word_of_token[sentence];
    const int64_t size = words_read(words);  // of a cut sentence the words behind have no answer
    for (size_t h = 0; h < heads; ++h) {
      const MostRead found = most_read(
          merge_to_words(batch.matrix(static_cast<int>(s), static_cast<int>(h)), words, size, words, size));
      for_each_edge(
          tree, gold.edges, [&](const std::string& relation, Direction direction, int word, int answer) {
            const std::vector<int>& predictions =
                direction == Direction::kReadByHead ? found.read_by : found.reads;
            if (word >= size || predictions[static_cast<size_t>(word)] != answer) return;
            hits[static_cast<size_t>(s)].push_back(gold.number.at({relation, direction}) * heads + h);
          });
    }
  });
  for (size_t s = 0; s < hits.size(); ++s) {
    const size_t fold = fold_of(gold.first + batch.sentences[s]);
    for (const size_t hit : hits[s]) ++counts.found[hit][fold];
  }
}

int RelationScorer::best_offset(const TaskCounts& task, CorpusHalf half) {
  const auto best = std::max_element(
      task.found_at_offset.begin(), task.found_at_offset.end(),
      [&](const auto& a, const auto& b) { return sum(a.second, half) < sum(b.second, half); });
  return best->first;
}

RelationScore RelationScorer::score(const Counts& counts, int head, const Task& task,
                                    const TaskCounts& of_task, const Folds& found, CorpusHalf half,
                                    int offset) {
  const auto at_offset = of_task.found_at_offset.find(offset);
  const Folds by_offset = at_offset == of_task.found_at_offset.end() ? Folds{} : at_offset->second;
  Folds gain{};
  for (size_t fold = 0; fold < gain.size(); ++fold) gain[fold] = found[fold] - by_offset[fold];
  const std::vector<int64_t> support = folds_of(of_task.support, half);
  return {.attention = counts.attention,
          .place = counts.place,
          .head = head,
          .relation = task.first,
          .direction = task.second,
          .support = sum(of_task.support, half),
          .found = sum(found, half),
          .offset = offset,
          .found_at_offset = sum(by_offset, half),
          .interval = jackknife(folds_of(found, half), support),
          .gain_interval = jackknife(folds_of(gain, half), support)};
}

RelationScorer::Folds RelationScorer::Counts::of(size_t task, int head) const {
  const size_t at = task * static_cast<size_t>(heads) + static_cast<size_t>(head);
  return at < found.size() ? found[at] : Folds{};  // a relation that came after the attention's last batch
}

std::vector<RelationScore> RelationScorer::scores(CorpusHalf half) const {
  std::vector<RelationScore> all;
  std::map<const Side*, std::vector<int>> offsets;  // the best of each task
  for (const Side* of : {&source_, &target_}) {
    for (const TaskCounts& task : of->tasks) offsets[of].push_back(best_offset(task, half));
  }
  for (const auto& [key, counts] : counts_) {
    const Side& gold = side(key.first);
    for (int h = 0; h < counts.heads; ++h) {
      throw_if_stopped();
      for (const auto& [task, number] : gold.number)
        all.push_back(
            score(counts, h, task, gold.tasks[number], counts.of(number, h), half, offsets[&gold][number]));
    }
  }
  return all;
}

std::optional<RelationScore> RelationScorer::chosen(const Side& of, const Task& task,
                                                    const std::vector<size_t>& numbers,
                                                    int64_t least_support) const {
  TaskCounts together;
  for (const size_t number : numbers) {
    add(together.support, of.tasks[number].support);
    for (const auto& [offset, found] : of.tasks[number].found_at_offset)
      add(together.found_at_offset[offset], found);
  }
  if (sum(together.support, CorpusHalf::kChosenOn) < least_support ||
      sum(together.support, CorpusHalf::kScoredOn) < least_support)
    return std::nullopt;
  const Counts* best = nullptr;
  int head = 0;
  Folds of_best{};
  int64_t most = -1;
  for (const auto& [key, counts] : counts_) {
    if (&side(key.first) != &of) continue;
    for (int h = 0; h < counts.heads; ++h) {
      Folds found{};
      for (const size_t number : numbers) add(found, counts.of(number, h));
      if (sum(found, CorpusHalf::kChosenOn) <= most) continue;
      most = sum(found, CorpusHalf::kChosenOn);
      best = &counts, head = h, of_best = found;
    }
  }
  if (best == nullptr) return std::nullopt;
  return score(*best, head, task, together, of_best, CorpusHalf::kScoredOn,
               best_offset(together, CorpusHalf::kChosenOn));
}

std::vector<RelationScore> RelationScorer::chosen_and_scored(int64_t least_support) const {
  std::vector<RelationScore> all, of_relations;
  for (const Side* of : {&source_, &target_}) {
    for (const Direction direction : {Direction::kToHead, Direction::kReadByHead}) {
      std::vector<size_t> numbers;
      for (const auto& [task, number] : of->number) {
        if (task.second == direction) numbers.push_back(number);
      }
      const Task together{std::string(kAllRelations), direction};
      if (const auto best = numbers.empty() ? std::nullopt : chosen(*of, together, numbers, least_support))
        all.push_back(*best);
    }
    for (const auto& [task, number] : of->number) {
      throw_if_stopped();
      if (const auto best = chosen(*of, task, {number}, least_support)) of_relations.push_back(*best);
    }
  }
  std::stable_sort(of_relations.begin(), of_relations.end(),
                   [](const RelationScore& a, const RelationScore& b) { return a.support > b.support; });
  all.insert(all.end(), of_relations.begin(), of_relations.end());
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

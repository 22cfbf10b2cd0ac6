#include "multihead/text/learn_merges.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "multihead/base/stop.h"

namespace mh {
namespace {

using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    return std::hash<uint64_t>{}(
        (static_cast<uint64_t>(pair.first) << 32 | static_cast<uint32_t>(pair.second)) * 0x9E3779B97F4A7C15u);
  }
};

struct Occurrences {
  int64_t count = 0;
  std::vector<int32_t> words;  // where it is or was; may repeat
};

struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const {  // the queue's top: the highest count, then the smaller ids
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Learner {
 public:
  explicit Learner(std::vector<CountedWord> words) : words_(std::move(words)) {
    for (size_t w = 0; w < words_.size(); ++w) {
      const auto& symbols = words_[w].symbols;
      for (size_t i = 0; i + 1 < symbols.size(); ++i)
        change({symbols[i], symbols[i + 1]}, w, words_[w].count);
    }
    queue_changed();
  }

  /// The pair to merge next; false when none occurs often enough.
  bool next(Pair& pair, int64_t least_count) {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(top.pair);
      // Out of date: its present count, if any, was queued when it changed.
      if (found == pairs_.end() || found->second.count != top.count) continue;
      if (top.count < least_count) return false;
      pair = top.pair;
      return true;
    }
    return false;
  }

  void merge(const Pair& pair, int32_t merged) {
    std::vector<int32_t> where = std::move(pairs_[pair].words);
    std::sort(where.begin(), where.end());
    where.erase(std::unique(where.begin(), where.end()), where.end());
    for (const int32_t w : where) merge_in_word(w, pair, merged);
    pairs_.erase(pair);
    queue_changed();
  }
  void forbid(const Pair& pair) { pairs_.erase(pair); }

 private:
  void merge_in_word(int32_t w, const Pair& pair, int32_t merged) {
    auto& symbols = words_[w].symbols;
    const int64_t count = words_[w].count;
    size_t kept = 0;
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (i + 1 >= symbols.size() || Pair{symbols[i], symbols[i + 1]} != pair) {
        symbols[kept++] = symbols[i];
        continue;
      }
      change(pair, w, -count);
      if (kept > 0) {  // the neighbour on the left is final, merged or not
        change({symbols[kept - 1], pair.first}, w, -count);
        change({symbols[kept - 1], merged}, w, count);
      }
      if (i + 2 < symbols.size()) {
        change({pair.second, symbols[i + 2]}, w, -count);
        change({merged, symbols[i + 2]}, w, count);
      }
      symbols[kept++] = merged;
      ++i;
    }
    symbols.resize(kept);
  }

  void change(const Pair& pair, size_t word, int64_t by) {
    if (pair.first < 0 || pair.second < 0) return;
    Occurrences& occurrences = pairs_[pair];
    occurrences.count += by;
    if (by > 0) occurrences.words.push_back(static_cast<int32_t>(word));
    changed_.push_back(pair);
  }
  void queue_changed() {
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const Pair& pair : changed_) {
      const auto found = pairs_.find(pair);
      if (found != pairs_.end() && found->second.count > 0) queue_.push({found->second.count, pair});
    }
    changed_.clear();
  }

  std::vector<CountedWord> words_;
  std::unordered_map<Pair, Occurrences, PairHash> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> changed_;
};

}  // namespace

std::vector<Pair> learn_merges(std::vector<CountedWord> words, std::vector<std::string>& tokens,
                               int32_t reserved, int32_t vocabulary_size, int64_t least_count) {
  std::unordered_map<std::string, int32_t> ids;
  for (size_t i = 0; i < tokens.size(); ++i) ids.emplace(tokens[i], static_cast<int32_t>(i));
  std::vector<Pair> merges;
  Learner learner(std::move(words));
  Pair pair;
  while (static_cast<int32_t>(tokens.size()) < vocabulary_size && learner.next(pair, least_count)) {
    throw_if_stopped();
    const std::string merged = tokens[pair.first] + tokens[pair.second];
    const auto [place, is_new] = ids.emplace(merged, static_cast<int32_t>(tokens.size()));
    if (place->second < reserved) {  // e.g. "<unk" + ">"
      learner.forbid(pair);
      continue;
    }
    if (is_new) tokens.push_back(merged);  // else another way to the same piece
    merges.push_back(pair);
    learner.merge(pair, place->second);
  }
  return merges;
}

}  // namespace mh

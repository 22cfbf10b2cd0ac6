#include "multihead/heads/retrieval/cached_text.h"

#include <algorithm>
#include <optional>

#include "multihead/base/ragged.h"
#include "multihead/models/next_words.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// Rows that are read at once: enough for fast products, few enough that a composed head's weights, rows times keys, are small.
constexpr size_t kRowsOfBlock = 256;

}  // namespace

void CachedText::begin(int64_t number, int64_t count) {
  number_ = number;
  count_ = count;
  tape_.clear();
  Context context{.tape = tape_};
  model_.start(context, {}, cache_);
}

PredictedTokens CachedText::read(std::span<const int32_t> tokens, Sites* more, const AskedOfRows& asked) {
  PredictedTokens predicted;
  std::optional<SitesInTurn> both;
  if (more != nullptr) both.emplace(sites_, *more);
  ListSites listed(both ? &*both : sites_, {.texts = {&number_, 1}, .count = count_});
  for (size_t begin = 0; begin < tokens.size(); begin += kRowsOfBlock) {
    const size_t count = std::min(kRowsOfBlock, tokens.size() - begin);
    tape_.clear();
    Context context{.tape = tape_, .sites = listed.sites()};
    Ragged rows;
    rows.add(static_cast<int32_t>(count));
    const Var states = model_.extend(context, tokens.subspan(begin, count), {.rows = &rows}, cache_);
    NextWords words(model_.vocabulary(), context, states, cache_.new_places());
    if (!asked.targets.empty()) {
      const std::vector<float> found = words.log_probabilities(asked.targets.subspan(begin, count), scratch_);
      predicted.log_probabilities.insert(predicted.log_probabilities.end(), found.begin(), found.end());
    }
    if (!asked.best) continue;
    std::vector<Candidate> best(count);
    words.best({.candidates = 1}, best, scratch_);
    for (const Candidate& one : best) predicted.best.push_back(one.token);
  }
  return predicted;
}

}  // namespace mh

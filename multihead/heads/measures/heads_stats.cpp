#include "multihead/heads/measures/heads_stats.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/heads/sites/inspected_texts.h"

namespace mh {

std::string_view name_of(HeadRole role) {
  constexpr std::string_view kNames[] = {"previous token", "next token", "same token",  "fixed offset",
                                         "induction",      "rare word",  "first token", "separator"};
  return kNames[static_cast<size_t>(role)];
}

std::optional<HeadRole> HeadStats::role() const {
  constexpr double kPositional = 0.9, kHalf = 0.5;
  const auto most = std::max_element(figures.most_at_offset.begin(), figures.most_at_offset.end());
  if (*most >= kPositional) {
    const auto offset = most - figures.most_at_offset.begin() - HeadFigures::kReach;
    if (offset == -1) return HeadRole::kPreviousToken;
    if (offset == 1) return HeadRole::kNextToken;
    return offset == 0 ? HeadRole::kSameToken : HeadRole::kOtherOffset;
  }
  if (repeated && repeated->induction >= kHalf) return HeadRole::kInduction;
  if (roles.on_rarest.value_or(0) >= kHalf) return HeadRole::kRareWord;
  if (figures.on_first >= kHalf) return HeadRole::kFirstToken;
  if (figures.on_separators >= kHalf) return HeadRole::kSeparator;
  return std::nullopt;
}

StatsReport heads_stats(const ModelFolder& folder, HeadsCorpus& corpus, const ObserveHeadsOptions& options) {
  WordCounts counts;
  for (HeadsText text = corpus.next(); !text.sources.empty(); text = corpus.next()) {
    throw_if_stopped();
    counts.add(text);
  }
  corpus.restart();

  HeadStatistics statistics(HeadStatistics::Compare::kNothing);
  HeadRoleObserver roles(counts);
  CorpusObserver* const observers[] = {&statistics, &roles};
  ObserveHeadsOptions with_words = options;
  with_words.words = true;
  StatsReport report;
  report.read = observe_heads(folder, corpus, observers, with_words);

  const std::vector<HeadFigures> figures = statistics.heads();
  const std::vector<HeadRoles> of_roles = roles.heads();
  MH_ASSERT(figures.size() == of_roles.size());
  for (size_t h = 0; h < figures.size(); ++h)
    report.heads.push_back({.figures = figures[h], .roles = of_roles[h]});
  if (is_causal(folder)) {
    const std::vector<InductionScore> repeated = induction_scores(folder, {.sites = options.observe.sites});
    for (size_t h = 0; h < report.heads.size(); ++h) report.heads[h].repeated = repeated[h];
  }
  return report;
}

}  // namespace mh

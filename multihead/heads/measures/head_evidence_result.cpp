#include <algorithm>
#include <cmath>
#include <numeric>

#include "multihead/heads/measures/head_evidence.h"

namespace mh {
namespace {

/// The bin of the sentence that this share of sentences comes before.
size_t bin_of_share(const std::array<int64_t, HeadEvidence::kBins>& counts, double sentences) {
  size_t bin = 0;
  for (double before = 0; bin + 1 < counts.size(); ++bin) {
    before += static_cast<double>(counts[bin]);
    if (before > 0 && before >= sentences) break;
  }
  return bin;
}

/// Those with the best scores.
std::vector<TokenShare> best_of(std::vector<TokenShare> all, int most) {
  std::stable_sort(all.begin(), all.end(),
                   [](const TokenShare& a, const TokenShare& b) { return a.score() > b.score(); });
  all.resize(std::min(all.size(), static_cast<size_t>(most)));
  return all;
}

}  // namespace

double TokenShare::score() const {
  return share * std::log(lift());
}

int64_t HeadEvidence::sentences() const {
  return std::accumulate(strengths.begin(), strengths.end(), int64_t{0});
}

std::optional<double> HeadEvidence::quantile(double share) const {
  if (sentences() == 0) return std::nullopt;
  const double below = share * static_cast<double>(sentences());
  const size_t bin = bin_of_share(strengths, below);
  const auto before = static_cast<double>(
      std::accumulate(strengths.begin(), strengths.begin() + static_cast<std::ptrdiff_t>(bin), int64_t{0}));
  const double within = strengths[bin] > 0 ? (below - before) / static_cast<double>(strengths[bin]) : 0;
  return (static_cast<double>(bin) + std::clamp(within, 0.0, 1.0)) / static_cast<double>(kBins);
}

HeadEvidence HeadEvidenceObserver::result(AttentionPlace place, const OfAttention& attention,
                                          size_t h) const {
  const OfHead& of = attention.heads[h];
  HeadEvidence head{.attention = attention.name,
                    .place = place,
                    .head = static_cast<int>(h),
                    .queries = attention.queries,
                    .sure = of.sure,
                    .strengths = of.strengths};
  for (const Candidate& candidate : of.strongest) head.strongest.push_back(candidate.sentence);
  head.usual = of.by_bin[bin_of_share(of.strengths, 0.5 * static_cast<double>(head.sentences()))];

  const auto queries = static_cast<double>(attention.queries);
  const DistinctTokens& keys = texts_.key_tokens(place.kind);
  const DistinctTokens& at_queries = texts_.query_tokens(place.kind);
  std::vector<TokenShare> shares;
  for (size_t t = 0; t < of.chosen.size(); ++t) {
    if (of.chosen_weight[t] <= 0 || keys.counts[t] < options_.least_count) continue;
    TokenShare share{.id = keys.ids[t], .count = of.chosen[t], .occurrences = keys.counts[t]};
    share.share = of.chosen_weight[t] / of.choices_weight;
    share.expected = attention.even_choices[t] / queries;
    share.weight = of.chosen_weight[t] / static_cast<double>(share.count);
    if (share.lift() > 1) shares.push_back(share);
  }
  head.key_tokens = best_of(std::move(shares), options_.tokens);
  shares.clear();
  for (size_t t = 0; t < of.sure_at.size(); ++t) {
    if (of.sure_at[t] == 0 || attention.queries_of[t] < options_.least_count) continue;
    TokenShare share{.id = at_queries.ids[t], .count = of.sure_at[t], .occurrences = attention.queries_of[t]};
    share.share = static_cast<double>(share.count) / static_cast<double>(of.sure);
    share.expected = static_cast<double>(share.occurrences) / queries;
    share.weight = static_cast<double>(share.count) / static_cast<double>(share.occurrences);
    if (share.lift() > 1) shares.push_back(share);
  }
  head.query_tokens = best_of(std::move(shares), options_.tokens);

  for (const HeadAgreement::Same& same : agreement_.at(place.kind).of(place.layer, head.head)) {
    // Queries that have keys in both attentions, and chance, when one of their masks leaves no more than the other.
    const OfAttention& other = attentions_.at({place.kind, same.layer});
    const auto both = static_cast<double>(std::min(attention.queries, other.queries));
    if (both == 0) continue;
    head.alike.push_back({.head = {other.name, same.head},
                          .layer = same.layer,
                          .agreement = static_cast<double>(same.queries) / both,
                          .by_chance = std::min(attention.even_agreement / queries,
                                                other.even_agreement / static_cast<double>(other.queries))});
  }
  std::stable_sort(head.alike.begin(), head.alike.end(),
                   [](const HeadLike& a, const HeadLike& b) { return a.agreement > b.agreement; });
  head.alike.resize(std::min(head.alike.size(), static_cast<size_t>(options_.alike)));
  return head;
}

std::vector<HeadEvidence> HeadEvidenceObserver::heads() {
  for (auto& [kind, agreement] : agreement_) agreement.finish();
  std::vector<HeadEvidence> all;
  for (const auto& [key, attention] : attentions_) {
    for (size_t h = 0; h < attention.heads.size(); ++h) {
      if (attention.heads[h].wanted) all.push_back(result({key.first, key.second}, attention, h));
    }
  }
  return all;
}

}  // namespace mh

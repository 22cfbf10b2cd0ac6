#include "multihead/heads/importance/pruning_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/base/random.h"
#include "multihead/heads/importance/score_pass.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/io/check_option.h"

namespace mh {
namespace {

/// Texts 1, 3, ... and texts 2, 4, ...
std::pair<ScoredTexts, ScoredTexts> halves_of(ScoredTexts texts) {
  std::pair<ScoredTexts, ScoredTexts> halves{{.kind = texts.kind, .read = texts.read},
                                             {.kind = texts.kind, .read = texts.read}};
  for (size_t i = 0; i < texts.texts.size(); ++i)
    (i % 2 == 0 ? halves.first : halves.second).texts.push_back(std::move(texts.texts[i]));
  for (ScoredTexts* half : {&halves.first, &halves.second}) half->read.sentences = std::ssize(half->texts);
  return halves;
}

/// The last of the ranking first; with ranks within attentions, the last ones of all attentions before those above them.
std::vector<HeadName> muting_order(const ImportanceReport& report) {
  std::vector<std::pair<int, HeadName>> heads;  // how many of its attention are ranked below
  for (const HeadImportance& head : report.heads) {
    int below = 0;
    for (const HeadImportance& other : report.heads)
      below += other.name.attention == head.name.attention && other.rank > head.rank ? 1 : 0;
    heads.emplace_back(report.within_attentions ? below : -head.rank, head.name);
  }
  std::stable_sort(heads.begin(), heads.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<HeadName> order;
  for (auto& [place, name] : heads) order.push_back(std::move(name));
  return order;
}

Tensor whole_vectors(const ScoredModel& model, const ScoredTexts& texts, const ObserveOptions& read) {
  Tensor all(std::ssize(texts.texts), model.sentences().dimension);
  Tape tape;
  for (const auto& numbers : plan_scored(texts, read.max_batch_tokens)) {
    const ScoredBatch batch = scored_batch(*model.folder().model, texts, numbers);
    const ScorePass pass(tape, model, texts.kind, batch, {.sites = read.sites});
    for (size_t s = 0; s < numbers.size(); ++s)
      std::copy_n(pass.vectors().row(static_cast<int64_t>(s)), all.cols(), all.view().row(numbers[s]));
  }
  return all;
}

Interval loss_of(const std::vector<double>& whole, const std::vector<double>& without) {
  std::vector<double> losses(whole.size());
  for (size_t i = 0; i < losses.size(); ++i) losses[i] = whole[i] - without[i];
  return interval_of(losses);
}

}  // namespace

std::vector<double> scores_without(const ScoredModel& model, const ScoredTexts& texts,
                                   const std::vector<HeadName>& muted, const ObserveOptions& read,
                                   ConstMatrixView whole) {
  SiteValues values;
  for (const HeadName& head : muted) values.mute(head.name());
  SitesInTurn sites(read.sites, values);
  VocabularyScratch scratch;
  Tape tape;
  std::vector<double> scores(texts.texts.size());
  for (const auto& numbers : plan_scored(texts, read.max_batch_tokens)) {
    const ScoredBatch batch = scored_batch(*model.folder().model, texts, numbers);
    ScorePass pass(tape, model, texts.kind, batch, {.sites = &sites});
    const ConstMatrixView references =
        whole.empty() ? whole : whole.rows_between(numbers.front(), numbers.back() + 1);
    const std::vector<double> found = pass.scores(references, scratch);
    for (size_t s = 0; s < numbers.size(); ++s) {
      const auto n = static_cast<size_t>(numbers[s]);
      const double predictions = std::max(1.0, static_cast<double>(texts.texts[n].tokens.size()));
      scores[n] = found[s] / predictions;
      if (!std::isfinite(scores[n]))
        throw Error(fmt::format("text {}: its score without heads is not finite", n + 1));
    }
  }
  return scores;
}

PruningCurve pruning_curve(const ScoredModel& model, HeadsCorpus& corpus, const ImportanceOptions& options,
                           const PruningCurveOptions& curve) {
  check_settings(curve);
  if (options.measure == ImportanceMeasure::kAlone)
    throw UsageError(
        "`by` alone ranks each head as the only one of its attention, and a curve mutes heads in one order; "
        "leave `curve` out, or choose another `by`");
  const ObserveOptions& read = options.texts.read.observe;
  const auto halves = halves_of(read_scored_texts(model.folder(), corpus, options.texts));
  const ScoredTexts &ranked = halves.first, &scored = halves.second;
  const bool vectors = ranked.kind == ScoreKind::kVectors;
  if (scored.texts.empty() || (vectors && ranked.texts.size() < 2))
    throw UsageError(
        fmt::format("a curve ranks heads on one half of the lines and scores them on the other; give "
                    "at least {} lines of text",
                    vectors ? 3 : 2));
  PruningCurve found{.importance = heads_importance(model, ranked, options),
                     .scored = std::ssize(scored.texts)};
  found.order = muting_order(found.importance);
  const Tensor whole = vectors ? whole_vectors(model, scored, read) : Tensor();
  const std::vector<double> before = scores_without(model, scored, {}, read, whole.view());

  std::vector<std::vector<HeadName>> at_random;
  Random random(options.texts.seed);
  for (int i = 0; i < curve.random_orders; ++i) random.shuffle(at_random.emplace_back(found.order));
  const auto heads = std::ssize(found.order);
  for (int point = 0; point <= curve.points; ++point) {
    const int64_t muted = heads * point / curve.points;
    if (!found.points.empty() && found.points.back().muted == muted) continue;
    const auto without = [&](const std::vector<HeadName>& order) {
      return scores_without(model, scored, {order.begin(), order.begin() + muted}, read, whole.view());
    };
    const std::vector<double> scores = without(found.order);
    std::vector<double> losses;
    for (const auto& order : at_random) losses.push_back(loss_of(before, without(order)).mean);
    found.points.push_back({.muted = muted,
                            .score = interval_of(scores),
                            .loss = loss_of(before, scores),
                            .random = losses.empty() ? Interval() : interval_of(losses)});
  }
  return found;
}

}  // namespace mh

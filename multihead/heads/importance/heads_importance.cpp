#include "multihead/heads/importance/heads_importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/heads/importance/gate_gradients.h"

namespace mh {
namespace {

/// Of each head, the texts' numbers in its column of `values`.
std::vector<HeadImportance> importance_of(const std::vector<HeadName>& heads, ConstMatrixView values,
                                          bool absolute) {
  std::vector<HeadImportance> found;
  std::vector<double> column(static_cast<size_t>(values.rows));
  for (size_t h = 0; h < heads.size(); ++h) {
    for (size_t s = 0; s < column.size(); ++s) {
      const auto value = static_cast<double>(values(static_cast<int64_t>(s), static_cast<int64_t>(h)));
      column[s] = absolute ? std::fabs(value) : value;
    }
    found.push_back({.name = heads[h], .importance = interval_of(column)});
  }
  return found;
}

void normalise_attentions(std::vector<HeadImportance>& heads) {
  std::map<std::string, double> squares;
  for (const HeadImportance& head : heads)
    squares[head.name.attention] += head.importance.mean * head.importance.mean;
  for (HeadImportance& head : heads) {
    const double length = std::sqrt(squares[head.name.attention]);
    if (length == 0) continue;  // no head of it does anything
    head.importance.mean /= length;
    head.importance.half /= length;
  }
}

void rank(std::vector<HeadImportance>& heads, const ImportanceReport& report) {
  std::map<std::string, size_t> place;  // of attentions, in the order of the model
  for (const HeadImportance& head : heads) place.emplace(head.name.attention, place.size());
  const double sign =
      report.measure == ImportanceMeasure::kAlone ? -1 : 1;  // the least loss is the best head
  std::stable_sort(heads.begin(), heads.end(), [&](const HeadImportance& a, const HeadImportance& b) {
    const size_t of_a = place.at(a.name.attention), of_b = place.at(b.name.attention);
    if (report.within_attentions && of_a != of_b) return of_a < of_b;
    return sign * a.importance.mean > sign * b.importance.mean;
  });
  std::map<std::string, int> counted;
  for (HeadImportance& head : heads)
    head.rank = ++counted[report.within_attentions ? head.name.attention : std::string()];
}

std::vector<HeadName> heads_wanted(const Model& model, const std::vector<HeadPattern>& patterns) {
  std::vector<HeadName> all = model.heads_named(HeadPattern("*"));
  if (patterns.empty()) return all;
  for (const HeadPattern& pattern : patterns) model.heads_named(pattern);  // each must name something
  std::erase_if(all, [&](const HeadName& head) {
    return std::none_of(patterns.begin(), patterns.end(), [&](const HeadPattern& pattern) {
      return pattern.matches(head.attention, head.head);
    });
  });
  return all;
}

}  // namespace

ImportanceReport heads_importance(const ScoredModel& model, HeadsCorpus& corpus,
                                  const ImportanceOptions& options) {
  const Sites* const sites = options.texts.read.observe.sites;
  if (sites != nullptr) model.folder().model->check(*sites);
  heads_wanted(*model.folder().model, options.heads);  // before the corpus is read
  return heads_importance(model, read_scored_texts(model.folder(), corpus, options.texts), options);
}

ImportanceReport heads_importance(const ScoredModel& model, const ScoredTexts& texts,
                                  const ImportanceOptions& options) {
  const bool gradients = options.measure == ImportanceMeasure::kGradient;
  if (options.normalised && (!gradients || !options.heads.empty()))
    throw UsageError(
        "`normalised` divides by the norm of the gradients of all heads of an attention; leave it out, or "
        "take the gradients of all heads");
  const std::vector<HeadName> heads = heads_wanted(*model.folder().model, options.heads);
  const ObserveOptions& read = options.texts.read.observe;
  ImportanceReport report{
      .read = texts.read,
      .kind = texts.kind,
      .predictions = texts.predictions(),
      .measure = options.measure,
      .to = options.to,
      .normalised = options.normalised,
      .within_attentions = options.within_attentions || options.measure == ImportanceMeasure::kAlone};
  const auto count = static_cast<double>(texts.texts.size());
  if (gradients) {
    const GateGradients found = gate_gradients(
        model, texts,
        {.max_batch_tokens = read.max_batch_tokens, .sites = read.sites, .progress = read.progress});
    report.score = found.score / count;
    report.heads = importance_of(found.heads, found.gradients.view(), true);
    std::erase_if(report.heads, [&](const HeadImportance& head) {
      return std::find(heads.begin(), heads.end(), head.name) == heads.end();
    });
    if (options.normalised) normalise_attentions(report.heads);
  } else {
    const HeadAblation found = ablate_heads(model, texts, heads,
                                            {.to = options.to,
                                             .all_others = options.measure == ImportanceMeasure::kAlone,
                                             .max_batch_tokens = read.max_batch_tokens,
                                             .sites = read.sites,
                                             .progress = read.progress});
    report.score = std::accumulate(found.scores.begin(), found.scores.end(), 0.0) / count;
    report.heads = importance_of(heads, found.losses.view(), false);
  }
  rank(report.heads, report);
  return report;
}

}  // namespace mh

// Table 3 of Vaswani et al. 2017 in miniature.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lab/studies/claim_words.h"
#include "lab/studies/comparison.h"
#include "lab/studies/table3/claims.h"
#include "lab/studies/table3/rows.h"

namespace mh::table3 {
namespace {

// Differences in the paper that count; claims.json names them, too.
constexpr double kLeastPerplexity = 0.02, kLeastBleu = 0.1;

std::vector<double> bleu(ArmRunner& runner, const Arm& arm) {
  return of_runs(runner.runs(arm), [](const ArmRun& run) { return run.bleu; });
}

/// Decided together, by a two-sided sign test and Holm's correction.
void decide_agreement(Claim& claim, const std::vector<Agreement>& all) {
  std::vector<double> p;
  for (const Agreement& found : all)
    p.push_back(std::min(1.0, 2 * std::min(found.chance, found.chance_of_fewer)));
  p = holm(p);
  for (size_t i = 0; i < all.size(); ++i) {
    const Agreement& found = all[i];
    decide(claim, found.chance < found.chance_of_fewer,
           fmt::format("{} of {} agree, chance would give {:.1f}; p = {:.4f} (Holm's, of {} comparisons)",
                       found.agree, found.clear, found.clear / 2.0, p[i], all.size()));
    if (p[i] > kLevel) claim.clauses[i].verdict = Verdict::kUndecided;
  }
}

Claim table_in_miniature(ArmRunner& runner) {
  std::vector<Row> all = rows(runner);
  std::vector<Arm*> arms;
  for (Row& row : all) {
    arms.push_back(&row.arm);
    if (row.usual) arms.push_back(&*row.usual);
  }
  runner.tune(arms);
  Claim claim = claim_without_figures("table 3");
  const Arm& base = all[0].arm;
  std::vector<Differences> by_loss, by_bleu;
  std::vector<Arm> shown, heads;
  const auto add = [&](const Arm& arm, const Published& paper) {
    const std::vector<double> bleus = bleu(runner, arm), score = paired(bleus, bleu(runner, base)),
                              loss = loss_difference(runner, arm, base);
    const bool first = shown.empty();
    claim.tables[0].rows.push_back({arm.name, runner.rate_of(arm),
                                    std::to_string(runner.runs(arm)[0].parameters),
                                    interval_text(losses(runner.runs(arm))), first ? "" : interval_text(loss),
                                    fmt::format("{:.2f}", paper.perplexity), interval_text(bleus, 1),
                                    first ? "" : interval_text(score, 1), fmt::format("{:.1f}", paper.bleu)});
    shown.push_back(arm);
    return std::pair(Differences{loss, paper.perplexity - kPublishedBase.perplexity},
                     Differences{score, paper.bleu - kPublishedBase.bleu});
  };
  for (const Row& row : all) {
    auto [loss, score] = add(row.arm, row.paper);
    if (&row == &all[0] || row.arm.name.starts_with("(A)")) heads.push_back(row.arm);
    if (&row == &all[0]) continue;
    by_loss.push_back(std::move(loss));
    by_bleu.push_back(std::move(score));
  }
  for (const Row& row : all) {
    if (row.usual) add(*row.usual, row.paper);
  }
  fill_losses(claim.plots[0], runner, shown);
  fill_curves(claim.plots[1], runner, heads);
  decide_agreement(claim, {agreement(by_loss, kLeastPerplexity), agreement(by_bleu, kLeastBleu)});
  return claim;
}

Claim narrower_keys(ArmRunner& runner) {
  std::vector<Row> all = rows(runner);
  Arm base = all.front().arm;
  std::erase_if(all, [](const Row& row) { return !row.usual; });
  std::vector<Arm*> arms = {&base};
  for (Row& row : all) arms.insert(arms.end(), {&row.arm, &*row.usual});
  runner.tune(arms);
  const auto size = [&](size_t row) { return std::to_string(all[row].arm.model.geometry.d_key); };
  Claim claim = claim_without_figures("table 3 (B)", {{"quarter", size(0)}, {"half", size(1)}});
  std::vector<TwoStarts> both_starts;
  std::vector<Arm> shown = {base};
  std::vector<Prediction> predictions;
  std::string starts;
  for (const Row& row : all) {
    both_starts.push_back({row.arm, *row.usual});
    shown.insert(shown.end(), {row.arm, *row.usual});
    predictions.push_back({loss_difference(runner, row.arm, base), Limit::above(0)});
    starts += fmt::format("{}of d_k = {} by {}", starts.empty() ? "" : ", ", row.arm.model.geometry.d_key,
                          interval_text(loss_difference(runner, *row.usual, row.arm)));
  }
  fill_starts(claim.tables[0], runner, base, both_starts);
  fill_losses(claim.plots[0], runner, shown);
  predict(claim, predictions);
  measure(claim, "loss from the usual start minus that from the equal one: " + starts);
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {{"table 3", table_in_miniature}, {"table 3 (B)", narrower_keys}};
  return kChecks;
}

}  // namespace mh::table3

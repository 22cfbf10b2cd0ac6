// Table 3 of Vaswani et al. 2017 in miniature.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lab/studies/comparison.h"
#include "lab/studies/table3/claims.h"
#include "lab/studies/table3/rows.h"

namespace mh::table3 {
namespace {

constexpr double kLeastPerplexity = 0.02, kLeastBleu = 0.1;  // differences in the paper that count

std::vector<double> bleu(ArmRunner& runner, const Arm& arm) {
  return of_runs(runner.runs(arm), [](const ArmRun& run) { return run.bleu; });
}

struct Compared {
  const char* by;  // "loss and perplexity"
  double least;
  Agreement found;
};

/// Decided together, by a two-sided sign test and Holm's correction.
void add_agreement(Claim& claim, const std::vector<Compared>& all) {
  std::vector<double> p;
  for (const Compared& one : all)
    p.push_back(std::min(1.0, 2 * std::min(one.found.chance, one.found.chance_of_fewer)));
  p = holm(p);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [by, least, found] = all[i];
    const bool more = found.chance < found.chance_of_fewer;
    claim.clauses.push_back(
        {.statement = fmt::format(
             "By {}, rows that differ from the base go the way they went in the paper more often than "
             "chance would have it.",
             by),
         .asked = fmt::format(
             "of the rows that differ by more than {:g} in the paper and clearly here, more agree than "
             "half (sign test)",
             least),
         .measured =
             fmt::format("{} of {} agree, chance would give {:.1f}; p = {:.4f} (Holm's, of {} comparisons)",
                         found.agree, found.clear, found.clear / 2.0, p[i], all.size()),
         .verdict = p[i] > kLevel ? Verdict::kUndecided
                    : more        ? Verdict::kPass
                                  : Verdict::kFail,
         .kind = Evidence::kTrained});
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
  Claim claim{
      .id = "table 3",
      .statement =
          "The rows of the paper's Table 3 in miniature: every number is the same part or multiple of the "
          "base's. Our loss is compared with the paper's perplexity, our BLEU with its BLEU.",
      .remark =
          "The sign test takes the rows as independent, but all are compared with one base. Label smoothing "
          "raises the loss by itself, so its rows could hardly go another way. Rows with seeds that got "
          "stuck count, too."};
  const Arm& base = all[0].arm;
  Table table{
      "rows (B) start with scores of the base's variance; their usual start is below",
      {"row", "rate", "params", "loss", "minus base", "paper: PPL", "BLEU", "minus base", "paper: BLEU"},
      {}};
  std::vector<Differences> by_loss, by_bleu;
  std::vector<Arm> shown, heads;
  const auto add = [&](const Arm& arm, const Published& paper) {
    const bool first = table.rows.empty();
    const std::vector<double> loss = loss_difference(runner, arm, base),
                              score = paired(bleu(runner, arm), bleu(runner, base));
    table.rows.push_back(
        {arm.name, runner.rate_of(arm), std::to_string(runner.runs(arm)[0].parameters),
         interval_text(interval_of(losses(runner.runs(arm)))), first ? "" : interval_text(interval_of(loss)),
         fmt::format("{:.2f}", paper.perplexity), interval_text(interval_of(bleu(runner, arm)), 1),
         first ? "" : interval_text(interval_of(score), 1), fmt::format("{:.1f}", paper.bleu)});
    shown.push_back(arm);
    return Differences{loss, paper.perplexity - kPublishedBase.perplexity};
  };
  for (const Row& row : all) {
    Differences loss = add(row.arm, row.paper);
    if (&row == &all[0] || row.arm.name.starts_with("(A)")) heads.push_back(row.arm);
    if (&row == &all[0]) continue;
    by_loss.push_back(std::move(loss));
    by_bleu.push_back(
        {paired(bleu(runner, row.arm), bleu(runner, base)), row.paper.bleu - kPublishedBase.bleu});
  }
  for (const Row& row : all) {
    if (row.usual) add(*row.usual, row.paper);
  }
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(loss_plot(runner, shown, "Table 3 in miniature"));
  claim.plots.push_back(curve_plot(runner, heads, "Row (A): the number of heads at equal cost"));
  add_agreement(claim,
                {{"our loss and its perplexity", kLeastPerplexity, agreement(by_loss, kLeastPerplexity)},
                 {"our BLEU and its BLEU", kLeastBleu, agreement(by_bleu, kLeastBleu)}});
  return claim;
}

Claim narrower_keys(ArmRunner& runner) {
  std::vector<Row> all = rows(runner);
  Arm base = all.front().arm;
  std::erase_if(all, [](const Row& row) { return !row.usual; });
  std::vector<Arm*> arms = {&base};
  for (Row& row : all) arms.insert(arms.end(), {&row.arm, &*row.usual});
  runner.tune(arms);
  Claim claim{
      .id = "table 3 (B)",
      .statement =
          "Rows (B) alone: queries and keys of half and of a quarter of the size, from starts of equal "
          "variance.",
      .remark =
          "At the standard size this claim was written when its models were trained already, with the "
          "limits of all such comparisons.",
      .original_words =
          "\"In Table 3 rows (B), we observe that reducing the attention key size d_k hurts model "
          "quality.\" (Vaswani et al. 2017)"};
  std::vector<TwoStarts> both_starts;
  std::vector<Arm> shown = {base};
  std::vector<Prediction> predictions;
  std::string starts;
  for (const Row& row : all) {
    both_starts.push_back({row.arm, *row.usual});
    shown.insert(shown.end(), {row.arm, *row.usual});
    const std::string size = fmt::format("d_k = {}", row.arm.model.geometry.d_key);
    predictions.push_back({.statement = fmt::format("Heads of {} are worse than those of the base.", size),
                           .quantity = fmt::format("loss of {} minus base", size),
                           .by_seed = loss_difference(runner, row.arm, base),
                           .limit = Limit::above(0),
                           .original = OriginalSays::kSame});
    starts += fmt::format("{}of {} by {}", starts.empty() ? "" : ", ", size,
                          interval_text(interval_of(loss_difference(runner, *row.usual, row.arm))));
  }
  claim.tables.push_back(starts_table(runner, base, both_starts, "base and rows (B)"));
  claim.plots.push_back(loss_plot(runner, shown, "Narrower queries and keys"));
  add_predictions(claim, predictions);
  claim.clauses.push_back(
      measured_only("How much worse the usual start makes them.",
                    "loss from the usual start minus that from the equal one: " + starts));
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {{"table 3", table_in_miniature}, {"table 3 (B)", narrower_keys}};
  return kChecks;
}

}  // namespace mh::table3

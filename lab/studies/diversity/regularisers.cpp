// 001.3: the regularisers of Li et al. 2018.
#include <fmt/format.h>

#include <functional>
#include <utility>

#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"

namespace mh::diversity {
namespace {

struct Form {
  const char* name;
  Disagreement form;
  double HeadTelemetry::*acts_on;  // what the regulariser makes small
  const char* measure;
};
constexpr Form kForms[] = {
    {"subspace: cos(V_i, V_j)", {.subspace = true}, &HeadTelemetry::subspace, "cosine of V_i and V_j"},
    {"positions: |A_i * A_j|", {.positions = true}, &HeadTelemetry::positions, "A_i A_j"},
    {"output: cos(Att_i, Att_j)", {.output = true}, &HeadTelemetry::output, "cosine of Att_i and Att_j"}};

std::vector<double> at_the_end(ArmRunner& runner, const Arm& arm, double HeadTelemetry::*number) {
  return of_runs(runner.runs(arm), [number](const ArmRun& run) { return run.curve.back().heads.*number; });
}

/// The three forms; with --paper also their combinations.
std::vector<Arm> regularised_arms(const ArmRunner& runner) {
  std::vector<Arm> arms;
  const auto add = [&](const char* name, Disagreement form) {
    arms.push_back(runner.base(name));
    arms.back().disagreement = form;
  };
  for (const Form& form : kForms) add(form.name, form.form);
  if (runner.size() != StudySize::kPaper) return arms;
  add("subspace and positions", {.subspace = true, .positions = true});
  add("subspace and output", {.subspace = true, .output = true});
  add("positions and output", {.positions = true, .output = true});
  add("all three", {.subspace = true, .positions = true, .output = true});
  return arms;
}

}  // namespace

Claim regularisers(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner);
  std::vector<Arm> arms = regularised_arms(runner);
  runner.tune({&canonical});
  Table lambdas = runner.tune_weight(arms);
  Claim claim{
      .id = "001.3",
      .statement =
          "Preserving diversity by a regulariser, loss = NLL + (lambda / h^2) sum_ij of how alike heads i "
          "and j are. Each regulariser has the lambda, and then the learning rate, that suit it best.",
      .remark =
          "The sum has the terms with i = j, as that of Li et al. has. For |A_i * A_j| these are large where "
          "a head's own rows are sharp, so that regulariser keeps rows flat as well: a PASS of (c) or (d) "
          "does not show that heads come to look at other positions; (j) says what happens to the rows. (g), "
          "(h) and (i) were added after the published models were trained, with the margin of all such "
          "comparisons, and count in the correction of the others.",
      .original_words =
          "\"... and most importantly preserve this diversity during the training process.\" Li et al. 2018 "
          "(WMT14 En-De): 27.64 BLEU without, 28.51 with disagreement regularisation."};
  std::vector<Arm> all = {canonical};
  all.insert(all.end(), arms.begin(), arms.end());
  claim.tables.push_back(arm_table(runner, all, "test loss (without the regulariser)"));
  claim.tables.push_back(std::move(lambdas));
  Table table{"encoder heads at the end of training; entropy of a row as a part of log T",
              {"regulariser", "cos V", "A_i A_j", "cos Att", "JS, nats", "entropy"},
              {}};
  for (const Arm& arm : all) {
    const auto cell = [&](double HeadTelemetry::*number) {
      return interval_text(interval_of(at_the_end(runner, arm, number)));
    };
    table.rows.push_back({arm.name, cell(&HeadTelemetry::subspace), cell(&HeadTelemetry::positions),
                          cell(&HeadTelemetry::output), cell(&HeadTelemetry::divergence),
                          cell(&HeadTelemetry::entropy)});
  }
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(loss_plot(runner, all, "Regularisers that make heads differ"));
  const auto change = [&](size_t i, double HeadTelemetry::*number) {
    return paired(at_the_end(runner, arms[i], number), at_the_end(runner, canonical, number));
  };
  std::vector<Prediction> predictions, as_good;
  size_t positions = 0;
  for (size_t i = 0; i < std::size(kForms); ++i) {
    const Form& form = kForms[i];
    if (form.form == Disagreement{.positions = true}) positions = i;
    predictions.push_back(
        {.statement = fmt::format("Regularised ({}), heads are less alike by that measure.", form.name),
         .quantity = fmt::format("{} with it minus without", form.measure),
         .by_seed = change(i, form.acts_on),
         .limit = Limit::below(0)});
    predictions.push_back({.statement = fmt::format("Regularised ({}), the model is better.", form.name),
                           .quantity = "loss with it minus without",
                           .by_seed = loss_difference(runner, arms[i], canonical),
                           .limit = Limit::below(0),
                           .original = OriginalSays::kSame});
    as_good.push_back(
        {.statement = fmt::format("Regularised ({}), the model is as good as without it.", form.name),
         .quantity = "loss with it minus without",
         .by_seed = predictions.back().by_seed,
         .limit = Limit::within(kMargin)});
  }
  predictions.insert(predictions.end(), as_good.begin(), as_good.end());
  add_predictions(claim, predictions);
  claim.clauses.push_back(measured_only(
      fmt::format("What the regulariser of positions does to the rows ({}).", kForms[positions].name),
      fmt::format(
          "with it minus without, at the end: entropy of a row {}, divergence of two heads' rows {} nats",
          interval_text(interval_of(change(positions, &HeadTelemetry::entropy))),
          interval_text(interval_of(change(positions, &HeadTelemetry::divergence))))));
  return claim;
}

}  // namespace mh::diversity

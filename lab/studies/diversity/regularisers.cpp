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
    {"subspace: cos(V_i, V_j)", Disagreement::kSubspace, &HeadTelemetry::subspace, "cosine of V_i and V_j"},
    {"positions: |A_i * A_j|", Disagreement::kPositions, &HeadTelemetry::positions, "A_i A_j"},
    {"output: cos(Att_i, Att_j)", Disagreement::kOutput, &HeadTelemetry::output,
     "cosine of Att_i and Att_j"}};

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
  add("subspace and positions", Disagreement::kSubspaceAndPositions);
  add("subspace and output", Disagreement::kSubspaceAndOutput);
  add("positions and output", Disagreement::kPositionsAndOutput);
  add("all three", Disagreement::kAll);
  return arms;
}

}  // namespace

Claim regularisers(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner);
  std::vector<Arm> arms = regularised_arms(runner);
  runner.tune({&canonical});
  Table lambdas = runner.tune_weight(arms);
  Claim claim{.id = "001.3",
              .statement =
                  "Preserving diversity by a regulariser, loss = NLL + (lambda / h^2) sum_ij of how alike "
                  "heads i and j are. "
                  "Each regulariser has the lambda, and then the learning rate, that suit it best.",
              .original_words =
                  "\"... and most importantly preserve this diversity during the training process.\" Li et "
                  "al. 2018 (WMT14 "
                  "En-De): 27.64 BLEU without, 28.51 with disagreement regularisation."};
  std::vector<Arm> all = {canonical};
  all.insert(all.end(), arms.begin(), arms.end());
  claim.tables.push_back(arm_table(runner, all, "test loss (without the regulariser)"));
  claim.tables.push_back(std::move(lambdas));
  Table table{
      "encoder heads at the end of training", {"regulariser", "cos V", "A_i A_j", "cos Att", "JS, nats"}, {}};
  for (const Arm& arm : all) {
    const auto cell = [&](double HeadTelemetry::*number) {
      return interval_text(interval_of(at_the_end(runner, arm, number)));
    };
    table.rows.push_back({arm.name, cell(&HeadTelemetry::subspace), cell(&HeadTelemetry::positions),
                          cell(&HeadTelemetry::output), cell(&HeadTelemetry::divergence)});
  }
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(loss_plot(runner, all, "Regularisers that make heads differ"));
  std::vector<Prediction> predictions;
  for (size_t i = 0; i < std::size(kForms); ++i) {
    const Form& form = kForms[i];
    predictions.push_back(
        {.statement = fmt::format("Regularised ({}), heads are less alike by that measure.", form.name),
         .quantity = fmt::format("{} with it minus without", form.measure),
         .by_seed =
             paired(at_the_end(runner, arms[i], form.acts_on), at_the_end(runner, canonical, form.acts_on)),
         .limit = Limit::below(0)});
    predictions.push_back({.statement = fmt::format("Regularised ({}), the model is better.", form.name),
                           .quantity = "loss with it minus without",
                           .by_seed = loss_difference(runner, arms[i], canonical),
                           .limit = Limit::below(0),
                           .original = OriginalSays::kSame});
  }
  add_predictions(claim, predictions);
  return claim;
}

}  // namespace mh::diversity

// 001, trained: how different heads are, and what makes them so. (001.2 is starts.cpp, 001.4 segments.cpp.)
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "lab/studies/claim_words.h"
#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"

namespace mh::diversity {
namespace {

/// 001.1: from the start on.
Claim from_the_start(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner);
  runner.tune({&canonical});
  const auto& runs = runner.runs(canonical);
  Claim claim = claim_without_figures("001.1");
  for (size_t i = 0; i < runs[0].curve.size(); ++i) {
    claim.tables[0].rows.push_back(
        heads_row(std::to_string(runs[0].curve[i].update), runs, i,
                  {&HeadTelemetry::positions, &HeadTelemetry::divergence, &HeadTelemetry::entropy}));
  }
  claim.plots[0].series = {telemetry_series(runs, "random start", &HeadTelemetry::divergence)};
  const auto change = [&](const HeadNumber& number) {
    return paired(heads_at(runs, kEnd, number), heads_at(runs, 0, number));
  };
  predict(claim, {{change(&HeadTelemetry::divergence), Limit::above(0)},
                  {change(&HeadTelemetry::positions), Limit::below(0)}});
  return claim;
}

struct Form {
  const char* name;
  Disagreement form;
};
constexpr Form kForms[] = {
    {"subspace: cos(V_i, V_j)", {.subspace = true}},
    {"positions: |A_i * A_j|", {.positions = true}},
    {"output: cos(Att_i, Att_j)", {.output = true}},
    // The clauses are about those above, in that order. With --paper also their combinations:
    {"subspace and positions", {.subspace = true, .positions = true}},
    {"subspace and output", {.subspace = true, .output = true}},
    {"positions and output", {.positions = true, .output = true}},
    {"all three", {.subspace = true, .positions = true, .output = true}}};
constexpr size_t kPositions = 1, kSingle = 3;

/// 001.3: the regularisers of Li et al. 2018.
Claim regularisers(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner);
  std::vector<Arm> arms;
  const size_t forms = runner.size() == StudySize::kPaper ? std::size(kForms) : kSingle;
  for (const Form& form : std::span(kForms).first(forms)) {
    arms.push_back(runner.base(form.name));
    arms.back().disagreement = form.form;
  }
  runner.tune({&canonical});
  Claim claim = claim_without_figures("001.3");
  claim.tables[1] = runner.tune_weight(arms);
  std::vector<Arm> all = {canonical};
  all.insert(all.end(), arms.begin(), arms.end());
  fill_arms(claim.tables[0], runner, all);
  for (const Arm& arm : all) {
    claim.tables[2].rows.push_back(
        heads_row(arm.name, runner.runs(arm), kEnd,
                  {&HeadTelemetry::positions, &HeadTelemetry::divergence, &HeadTelemetry::entropy}));
  }
  fill_losses(claim.plots[0], runner, all);
  const auto change = [&](size_t i, double HeadTelemetry::*number) {
    return paired(heads_at(runner.runs(arms[i]), kEnd, number),
                  heads_at(runner.runs(canonical), kEnd, number));
  };
  std::vector<Prediction> predictions, as_good;
  for (size_t i = 0; i < kSingle; ++i) {
    const std::vector<double> loss = loss_difference(runner, arms[i], canonical);
    if (i == kPositions) predictions.push_back({change(i, &HeadTelemetry::positions), Limit::below(0)});
    predictions.push_back({loss, Limit::below(0)});
    as_good.push_back({loss, Limit::within(kMargin)});
  }
  predictions.insert(predictions.end(), as_good.begin(), as_good.end());
  predict(claim, predictions);
  measure(claim, fmt::format("with it minus without, at the end: entropy of a row {}, divergence of two "
                             "heads' rows {} nats",
                             interval_text(change(kPositions, &HeadTelemetry::entropy)),
                             interval_text(change(kPositions, &HeadTelemetry::divergence))));
  return claim;
}

constexpr int kMembers = 4;

Arm member(const ArmRunner& runner, uint64_t number) {
  Arm arm = with_heads(runner.base(fmt::format("single head, d/2, member {}", number)), 1);
  arm.model.d_model = runner.settings().model.d_model / 2;
  arm.model.encoder_ff = arm.model.decoder_ff = runner.settings().model.encoder_ff / 2;
  arm.member = number;
  return arm;
}

/// 001.5: is the concatenation of heads an ensemble?
Claim ensemble(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner), first = member(runner, 1);
  runner.tune({&canonical, &first});
  std::vector<Arm> members = {first};
  while (members.size() < kMembers) {
    members.push_back(member(runner, members.size() + 1));
    members.back().learning_rate = first.learning_rate;
  }
  runner.prepare(members);
  std::vector<double> together, alone;
  for (const uint64_t seed : runner.seeds()) {
    std::vector<std::unique_ptr<EncoderDecoder>> models;
    std::vector<EncoderDecoder*> all;
    double sum = 0;
    for (const Arm& one : members) {
      all.push_back(models.emplace_back(runner.trained(one, seed)).get());
      sum += runner.test_loss(*all.back());
    }
    alone.push_back(sum / kMembers);
    together.push_back(runner.ensemble_loss(all));
  }
  const std::vector<double> whole = losses(runner.runs(canonical));
  Claim claim = claim_without_figures("001.5");
  const int64_t parameters = parameters_of(first.model);
  claim.tables[0].rows = {
      {canonical.name, runner.rate_of(canonical), std::to_string(parameters_of(canonical.model)),
       interval_text(whole)},
      {"a single-head model of d/2", runner.rate_of(first), std::to_string(parameters), interval_text(alone)},
      {"mean of 4 such", "", std::to_string(kMembers * parameters), interval_text(together)}};
  fill_losses(claim.plots[0], runner, {canonical});
  claim.plots[0].series.push_back({.name = "mean of 4 single-head models", .y = together});
  claim.plots[0].series.push_back({.name = "one of them", .y = alone});
  predict(claim,
          {{paired(together, alone), Limit::below(0)}, {paired(together, whole), Limit::within(kMargin)}});
  return claim;
}

}  // namespace

std::vector<double> heads_at(const std::vector<ArmRun>& runs, size_t i, const HeadNumber& number) {
  return of_runs(runs, [&](const ArmRun& run) {
    return number(i == kEnd ? run.curve.back().heads : run.curve[i].heads);
  });
}

std::vector<std::string> heads_row(std::string name, const std::vector<ArmRun>& runs, size_t i,
                                   const std::vector<HeadNumber>& numbers) {
  std::vector<std::string> row = {std::move(name)};
  for (const HeadNumber& number : numbers) row.push_back(interval_text(heads_at(runs, i, number)));
  return row;
}

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {{"001.1", from_the_start}, {"001.2, trained", starts_trained},
                                             {"001.3", regularisers},   {"001.4, trained", segments},
                                             {"001.5", ensemble},       {"001.8", escape},
                                             {"001.9", likeness},       {"001.10", written_penalty}};
  return kChecks;
}

}  // namespace mh::diversity

// 001.2, trained: from which starts heads become different, and when equal heads part.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lab/studies/claim_words.h"
#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"
#include "lab/studies/equal_start.h"

namespace mh::diversity {
namespace {

std::string parted_text(const std::vector<ArmRun>& runs) {
  std::vector<std::string> seeds;
  for (const ArmRun& run : runs) seeds.push_back(run.parted == 0 ? "never" : std::to_string(run.parted));
  return fmt::format("{}", fmt::join(seeds, ", "));
}

}  // namespace

Claim starts_trained(ArmRunner& runner) {
  using enum HeadInitialisation;
  const DropoutRates usual = runner.settings().model.dropout;  // residual dropout alone
  DropoutRates none = usual, weights = usual;
  none.residual = 0;
  weights.weights = 0.1f;
  enum : size_t { kBase, kByHead, kWhole, kRows, kTwins, kTwinsInput, kNoisy, kCopied };
  enum : size_t { kTwinsNone = kCopied + 1, kWholeNone, kTwinsWeights, kWholeWeights };  // of other dropout
  std::vector<Arm> arms;
  const auto add = [&](const char* name, HeadInitialisation initialisation, const DropoutRates& dropout) {
    arms.push_back(runner.base(name));
    arms.back().model.geometry.initialisation = initialisation;
    arms.back().model.dropout = dropout;
  };
  add("Xavier, fans (d, 3 d)", kXavierPacked, usual);
  add("Xavier, fans (d, d_k)", kXavierHead, usual);
  add("Xavier, fans (d, d)", kXavier, usual);
  add("orthogonal by head", kOrthogonal, usual);
  add("all heads equal", kEqual, usual);
  add("equal but for W_i^O", kEqualInput, usual);
  add("equal, noise of 1e-6", kEqualWithNoise, usual);
  add("W^K a copy of W^Q", kCopiedKeys, usual);
  add("all equal, no dropout", kEqual, none);
  add("fans (d, d), no dropout", kXavier, none);
  add("all equal, weights' dropout 0.1 too", kEqual, weights);
  add("fans (d, d), weights' dropout 0.1 too", kXavier, weights);
  Arm level = arms[kTwins];
  level.start = mh::Start::kEqualVariances;
  runner.tune(arms);
  runner.tune({&level});

  Claim claim = claim_without_figures("001.2, trained");
  std::vector<Table>& tables = claim.tables;
  fill_arms(tables[0], runner, {arms[kWhole], arms[kTwins], arms[kTwinsInput], arms[kNoisy], arms[kCopied]});
  fill_arms(tables[1], runner, {arms[kBase], arms[kByHead], arms[kWhole], arms[kRows]});
  fill_arms(tables[2], runner, {arms[kWholeNone], arms[kTwinsNone]});
  fill_arms(tables[3], runner, {arms[kWholeWeights], arms[kTwinsWeights]});
  for (const Arm& arm : arms) {
    const auto& runs = runner.runs(arm);
    const HeadInitialisation initialisation = arm.model.geometry.initialisation;
    const bool equal = starts_equal(initialisation) && initialisation != kEqualWithNoise;
    tables[4].rows.push_back(heads_row(arm.name, runs, kEnd, {&HeadTelemetry::divergence}));
    tables[4].rows.back().push_back(equal ? parted_text(runs) : "0");
  }
  const auto draw = [&](Plot& plot, size_t arm, std::string name) {
    plot.series.push_back(
        telemetry_series(runner.runs(arms[arm]), std::move(name), &HeadTelemetry::divergence));
  };
  draw(claim.plots[0], kWhole, "random start");
  draw(claim.plots[0], kNoisy, "equal, noise of 1e-6");
  draw(claim.plots[0], kTwins, "equal to the last bit");
  // The rest would hide what the picture is for.
  for (const size_t i : std::vector<size_t>{kWhole, kTwins, kTwinsInput, kNoisy, kTwinsNone, kTwinsWeights})
    draw(claim.plots[1], i, arms[i].name);
  fill_losses(claim.plots[2], runner, arms);

  const auto decide_parted = [&](size_t arm, int64_t update) {
    const auto& runs = runner.runs(arms[arm]);
    decide(claim,
           std::all_of(runs.begin(), runs.end(), [&](const ArmRun& run) { return run.parted == update; }),
           "first update apart, by seed: " + parted_text(runs));
  };
  decide_parted(kTwinsNone, 0);  // never
  decide_parted(kTwins, 0);
  decide_parted(kTwinsWeights, 1);
  const auto output = [&](size_t arm) {
    return start_variances(config_of(arms[arm], 1), mh::Start::kUsual, 1).output;
  };
  // (i): how much of (d) is the larger output of equal heads. `level` are equal heads from a start of equal variance, kBase
  // random ones that start with that variance. Filled in first, so that the predictions go to the clauses around it.
  claim.clauses[8].measured = fmt::format(
      "variance of the output at the start: {:.1f}, of the random heads {:.1f}; loss of "
      "equal heads from a start of equal variance minus the random heads of (d) {}, "
      "minus random heads of that variance {}",
      output(kTwins), output(kWhole), interval_text(loss_difference(runner, level, arms[kWhole])),
      interval_text(loss_difference(runner, level, arms[kBase])));
  const auto minus = [&](size_t a, size_t b) { return loss_difference(runner, arms[a], arms[b]); };
  const auto log_divergence = [&](size_t point) {
    return heads_at(runner.runs(arms[kNoisy]), point,
                    [](const HeadTelemetry& heads) { return std::log10(heads.divergence); });
  };
  predict(claim, {{minus(kTwins, kWhole), Limit::above(0)},
                  {minus(kNoisy, kWhole), Limit::within(kMargin)},
                  {minus(kTwinsInput, kWhole), Limit::within(kMargin)},
                  {minus(kCopied, kWhole), Limit::within(kMargin)},
                  {minus(kTwinsWeights, kWholeWeights), Limit::within(kMargin)},
                  {paired(log_divergence(kEnd), log_divergence(0)), Limit::above(1), 1}});
  return claim;
}

}  // namespace mh::diversity

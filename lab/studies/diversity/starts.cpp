// 001.2, trained: from which starts heads become different, and when equal heads part.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"
#include "lab/studies/equal_start.h"

namespace mh::diversity {
namespace {

constexpr float kDropout = 0.1f;

Arm start(const ArmRunner& runner, const char* name, HeadInitialisation initialisation,
          DropoutRates dropout) {
  Arm arm = runner.base(name);
  arm.model.geometry.initialisation = initialisation;
  arm.model.dropout = dropout;
  return arm;
}

std::vector<int64_t> parted(const std::vector<ArmRun>& runs) {
  std::vector<int64_t> updates;
  for (const ArmRun& run : runs) updates.push_back(run.parted);
  return updates;
}

std::string parted_text(const std::vector<ArmRun>& runs) {
  std::vector<std::string> seeds;
  for (const int64_t update : parted(runs)) seeds.push_back(update == 0 ? "never" : std::to_string(update));
  return fmt::format("{}", fmt::join(seeds, ", "));
}

/// How much of (d) is the larger output of equal heads: `level` are equal heads from a start of equal variance,
/// `canonical` random ones that start with that variance.
Clause scale_of(ArmRunner& runner, const Arm& equal, const Arm& random, const Arm& level,
                const Arm& canonical) {
  const auto output = [](const Arm& arm) {
    return start_variances(config_of(arm, 1), mh::Start::kUsual, 1).output;
  };
  return measured_only(
      "What of (d) is the equality, and what is the larger output.",
      fmt::format(
          "variance of the output at the start: {:.1f}, of the random heads {:.1f}; loss of equal heads "
          "from a start of equal variance minus the random heads of (d) {}, minus random heads of that "
          "variance {}",
          output(equal), output(random), interval_text(interval_of(loss_difference(runner, level, random))),
          interval_text(interval_of(loss_difference(runner, level, canonical)))));
}

}  // namespace

Claim starts_trained(ArmRunner& runner) {
  using enum HeadInitialisation;
  const DropoutRates usual = runner.settings().model.dropout;  // residual dropout alone
  DropoutRates none = usual, weights = usual;
  none.residual = 0;
  weights.weights = kDropout;
  enum : size_t {
    kBase,
    kByHead,
    kWhole,
    kRows,
    kTwins,
    kTwinsInput,
    kNoisy,
    kCopied,
    kTwinsNone,
    kWholeNone,
    kTwinsWeights,
    kWholeWeights
  };
  std::vector<Arm> arms = {start(runner, "Xavier, fans (d, 3 d)", kXavierPacked, usual),
                           start(runner, "Xavier, fans (d, d_k)", kXavierHead, usual),
                           start(runner, "Xavier, fans (d, d)", kXavier, usual),
                           start(runner, "orthogonal by head", kOrthogonal, usual),
                           start(runner, "all heads equal", kEqual, usual),
                           start(runner, "equal but for W_i^O", kEqualInput, usual),
                           start(runner, "equal, noise of 1e-6", kEqualWithNoise, usual),
                           start(runner, "W^K a copy of W^Q", kCopiedKeys, usual),
                           start(runner, "all equal, no dropout", kEqual, none),
                           start(runner, "fans (d, d), no dropout", kXavier, none),
                           start(runner, "all equal, weights' dropout 0.1 too", kEqual, weights),
                           start(runner, "fans (d, d), weights' dropout 0.1 too", kXavier, weights)};
  runner.tune(arms);
  Arm level = start(runner, "all heads equal", kEqual, usual);
  level.start = mh::Start::kEqualVariances;
  runner.tune({&level});
  Claim claim{
      .id = "001.2, trained",
      .statement =
          "Trained from those starts. Equal, noisy and copied heads start with fans (d, d), and are compared "
          "with random heads that start so. All are trained with residual dropout of 0.1 and no other, "
          "except where "
          "their names say otherwise.",
      .remark =
          "Equal W_i^O add up, so equal heads start with a larger output than random ones. (d), (e) and (h) "
          "compare starts of unequal scale, and do not tell what the equality alone costs; (i) does."};
  claim.tables.push_back(
      arm_table(runner, {arms[kWhole], arms[kTwins], arms[kTwinsInput], arms[kNoisy], arms[kCopied]},
                "starts with fans (d, d)"));
  claim.tables.push_back(arm_table(runner, {arms[kBase], arms[kByHead], arms[kWhole], arms[kRows]},
                                   "random starts of other sizes"));
  claim.tables.push_back(arm_table(runner, {arms[kWholeNone], arms[kTwinsNone]}, "without dropout"));
  claim.tables.push_back(arm_table(runner, {arms[kWholeWeights], arms[kTwinsWeights]},
                                   "with dropout of 0.1 of the attention weights, too"));
  Table table{"heads at the end of training",
              {"start", "cos Att", "JS, nats", "distance", "first update apart, by seed"},
              {}};
  Plot plot{.title = "How far apart heads are, by start",
            .x_label = "update",
            .y_label = "Jensen-Shannon divergence of two heads' rows, nats"};
  const std::set<size_t> shown = {kWhole, kTwins, kTwinsInput, kNoisy, kTwinsNone, kTwinsWeights};
  for (const Arm& arm : arms) {
    const auto& runs = runner.runs(arm);
    const auto at = [&](size_t i, const auto& number) {
      return interval_of(
          of_runs(runs, [&](const ArmRun& run) { return std::invoke(number, run.curve[i].heads); }));
    };
    const size_t last = runs[0].curve.size() - 1;
    const bool equal = starts_equal(arm.model.geometry.initialisation);
    table.rows.push_back(
        {arm.name, interval_text(at(last, &HeadTelemetry::output)),
         interval_text(at(last, &HeadTelemetry::divergence)),
         interval_text(at(last, &HeadTelemetry::distance)),
         equal && arm.model.geometry.initialisation != kEqualWithNoise ? parted_text(runs) : "0"});
    // The rest would hide what the picture is for.
    if (shown.contains(static_cast<size_t>(&arm - arms.data())))
      plot.series.push_back(telemetry_series(runs, arm.name, &HeadTelemetry::divergence));
  }
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(std::move(plot));
  claim.plots.push_back(loss_plot(runner, arms, "Starts, trained"));

  const auto plain = parted(runner.runs(arms[kTwinsNone])), residual = parted(runner.runs(arms[kTwins])),
             weighted = parted(runner.runs(arms[kTwinsWeights]));
  const auto never = [](const std::vector<int64_t>& updates) {
    return std::all_of(updates.begin(), updates.end(), [](int64_t u) { return u == 0; });
  };
  claim.clauses.push_back(of_every_model(
      "Heads that start equal stay equal, bit for bit, without dropout.", "no seed's heads part",
      "first update apart, by seed: " + parted_text(runner.runs(arms[kTwinsNone])), never(plain)));
  claim.clauses.push_back(of_every_model(
      "Residual dropout does not tell equal heads apart.", "no seed's heads part",
      "first update apart, by seed: " + parted_text(runner.runs(arms[kTwins])), never(residual)));
  claim.clauses.push_back(
      of_every_model("Dropout of the attention weights tells equal heads apart at once.",
                     "apart after the first update, every seed",
                     "first update apart, by seed: " + parted_text(runner.runs(arms[kTwinsWeights])),
                     std::all_of(weighted.begin(), weighted.end(), [](int64_t u) { return u == 1; })));
  const auto minus = [&](size_t a, size_t b) { return loss_difference(runner, arms[a], arms[b]); };
  add_predictions(claim,
                  {{.statement = "Heads that start equal, with a larger output, end worse than heads that "
                                 "start random.",
                    .quantity = "loss of equal minus random",
                    .by_seed = minus(kTwins, kWhole),
                    .limit = Limit::above(0)},
                   {.statement = "Equal heads with noise of 1e-6, which start with a larger output, too, "
                                 "end as good as random ones.",
                    .quantity = "loss of noisy minus random",
                    .by_seed = minus(kNoisy, kWhole),
                    .limit = Limit::within(kMargin)},
                   {.statement = "Other W_i^O are enough: such heads end as good as random ones.",
                    .quantity = "loss of equal but for W_i^O minus random",
                    .by_seed = minus(kTwinsInput, kWhole),
                    .limit = Limit::within(kMargin)},
                   {.statement = "W^K that starts as a copy of W^Q costs nothing.",
                    .quantity = "loss of copied minus random",
                    .by_seed = minus(kCopied, kWhole),
                    .limit = Limit::within(kMargin)},
                   {.statement = "With dropout of the weights, heads that start equal and with a larger "
                                 "output end as good as random ones.",
                    .quantity = "loss of equal minus random, both with it",
                    .by_seed = minus(kTwinsWeights, kWholeWeights),
                    .limit = Limit::within(kMargin)}});
  claim.clauses.push_back(scale_of(runner, arms[kTwins], arms[kWhole], level, arms[kBase]));
  return claim;
}

}  // namespace mh::diversity

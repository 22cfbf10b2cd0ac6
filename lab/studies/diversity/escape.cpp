// 001.8: how long heads that start nearly equal take to part. 001.9: how alike heads are through training, by measures that no
// choice of a basis changes. 001.10: a penalty on being alike that no choice of a basis satisfies.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/studies/claim_words.h"
#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"
#include "lab/studies/lab.h"
#include "multihead/base/error.h"
#include "multihead/base/interval.h"

namespace mh::diversity {
namespace {

/// Ten times more each; the quick size leaves some out.
std::vector<double> noises(StudySize size) {
  if (size == StudySize::kQuick) return {1e-8, 1e-6, 1e-5, 1e-3, 1e-1};
  return {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1};
}

/// Where the size has five seeds or more, eight: intervals of a few updates are asked for.
std::vector<uint64_t> seeds_of(const ArmRunner& runner) {
  std::vector<uint64_t> seeds = runner.seeds();
  while (seeds.size() >= 5 && seeds.size() < 8) seeds.push_back(seeds.back() + 1);
  return seeds;
}

/// Canonical heads with random numbers, which the others differ from in their start alone.
Arm random_arm(ArmRunner& runner) {
  Arm arm = canonical_arm(runner);
  arm.name = "random";
  arm.start = mh::Start::kEqualVariances;
  runner.tune({&arm});
  return arm;
}

HeadNumber measured(std::optional<double> HeadTelemetry::*number) {
  return [number](const HeadTelemetry& heads) {
    if (!(heads.*number))
      throw Error("a kept run of 001.8 to 001.10 lacks measures of its heads; remove its line from the runs");
    return *(heads.*number);
  };
}

/// The slope of the line through points (x, y) with the least squares.
double slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto mean = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  };
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0;
  for (size_t i = 0; i < x.size(); ++i) xy += (x[i] - mx) * (y[i] - my), xx += (x[i] - mx) * (x[i] - mx);
  return xy / xx;
}

/// The median of the updates after which heads were apart, with how many never were: "212", "never", "540 (3 of 8 never)".
std::string apart_text(const std::vector<ArmRun>& runs) {
  std::vector<double> updates;
  for (const ArmRun& run : runs) {
    if (run.apart > 0) updates.push_back(static_cast<double>(run.apart));
  }
  if (updates.empty()) return "never";
  const std::string median = fmt::format("{:g}", lab::median(updates));
  return updates.size() == runs.size()
             ? median
             : fmt::format("{} ({} of {} never)", median, runs.size() - updates.size(), runs.size());
}

}  // namespace

Claim escape(ArmRunner& runner) {
  const std::vector<double> all_noises = noises(runner.size());
  const std::vector<uint64_t> seeds = seeds_of(runner);
  const Arm random = random_arm(runner);
  std::vector<Arm> arms;
  for (const double noise : all_noises) {
    arms.push_back(random);
    arms.back().name = fmt::format("equal, noise of {:.0e}", noise);
    arms.back().model.geometry.initialisation = HeadInitialisation::kEqual;
    arms.back().head_noise = noise;
  }
  std::vector<Arm> everything = arms;
  everything.push_back(random);
  runner.prepare(everything, seeds);

  const auto distance = measured(&HeadTelemetry::distance);
  const auto log_distance = [&](const Arm& arm, size_t point) {
    return heads_at(runner.runs(arm, seeds), point,
                    [&](const HeadTelemetry& heads) { return std::log10(distance(heads)); });
  };
  const auto minus_random = [&](const Arm& arm) {
    return paired(losses(runner.runs(arm, seeds)), losses(runner.runs(random, seeds)));
  };
  Claim claim = claim_without_figures("001.8");
  for (const Arm& arm : everything) {
    const auto& runs = runner.runs(arm, seeds);
    const bool is_random = arm.head_noise == 0;
    claim.tables[0].rows.push_back({arm.name, is_random ? "0" : apart_text(runs),
                                    fmt::format("{:.1e}", interval_of(heads_at(runs, 0, distance)).mean),
                                    fmt::format("{:.2g}", interval_of(heads_at(runs, kEnd, distance)).mean),
                                    interval_text(losses(runs)),
                                    is_random ? "" : interval_text(minus_random(arm))});
    Series line{.name = arm.name};
    for (size_t i = 0; i < runs[0].curve.size(); ++i)
      add_point(line, static_cast<double>(runs[0].curve[i].update), heads_at(runs, i, distance));
    claim.plots[0].series.push_back(std::move(line));
  }

  // (a): of the noises after which the heads of every seed parted within the training.
  std::vector<double> powers;
  std::vector<std::vector<double>> updates(seeds.size());  // by seed and noise
  Series times{.name = "updates until apart"};
  for (const Arm& arm : arms) {
    const auto& runs = runner.runs(arm, seeds);
    if (std::ranges::any_of(runs, [](const ArmRun& run) { return run.apart == 0; })) continue;
    powers.push_back(-std::log10(arm.head_noise));
    for (size_t s = 0; s < seeds.size(); ++s) updates[s].push_back(static_cast<double>(runs[s].apart));
    add_point(times, powers.back(),
              of_runs(runs, [](const ArmRun& run) { return static_cast<double>(run.apart); }));
  }
  claim.plots[1].series = {times};
  std::vector<Prediction> predictions;
  if (powers.size() >= 3) {
    std::vector<double> slopes;
    for (const std::vector<double>& of_seed : updates) slopes.push_back(slope(powers, of_seed));
    predictions.push_back({slopes, Limit::above(0), 1});
  } else {
    decide(claim, false,
           fmt::format("only after {} of {} noises did the heads of all seeds part", powers.size(),
                       all_noises.size()));
    claim.clauses.front().asked += ": " + limit_text(Limit::above(0));
  }
  const auto arm_of = [&](double noise) -> const Arm& {
    return *std::ranges::find(arms, noise, &Arm::head_noise);
  };
  std::vector<double> tenfold = paired(log_distance(arm_of(1e-5), 1), log_distance(arm_of(1e-6), 1));
  for (double& of_seed : tenfold) of_seed -= 1;
  predictions.push_back({tenfold, Limit::within(0.3), 2});
  predictions.push_back(
      {paired(log_distance(arm_of(1e-6), kEnd), log_distance(arm_of(1e-6), 0)), Limit::above(1), 1});
  predictions.push_back({minus_random(arms.front()), Limit::within(kMargin)});
  predictions.push_back({minus_random(arms.back()), Limit::within(kMargin)});
  predict(claim, predictions);
  return claim;
}

Claim likeness(ArmRunner& runner) {
  const Arm random = random_arm(runner);
  const auto& runs = runner.runs(random, seeds_of(runner));
  const auto ratio = measured(&HeadTelemetry::ratio), written = measured(&HeadTelemetry::written);
  Claim claim = claim_without_figures("001.9");
  Series line{.name = "heads of one layer"};
  for (size_t i = 0; i < runs[0].curve.size(); ++i) {
    claim.tables[0].rows.push_back(
        heads_row(std::to_string(runs[0].curve[i].update), runs, i,
                  {ratio, written, &HeadTelemetry::divergence, &HeadTelemetry::entropy}));
    add_point(line, static_cast<double>(runs[0].curve[i].update), heads_at(runs, i, ratio));
  }
  claim.plots[0].series = {std::move(line)};
  std::vector<double> beyond_chance = heads_at(runs, kEnd, ratio);
  for (double& of_seed : beyond_chance) of_seed -= 1;
  predict(claim, {{paired(heads_at(runs, kEnd, ratio), heads_at(runs, 0, ratio)), Limit::below(0)},
                  {beyond_chance, Limit::below(0)},
                  {paired(heads_at(runs, kEnd, written), heads_at(runs, 0, written)), Limit::above(0)}});
  return claim;
}

Claim written_penalty(ArmRunner& runner) {
  const Arm random = random_arm(runner);
  std::vector<Arm> arms = {random};
  arms[0].name = "penalised";
  arms[0].learning_rate = 1;  // tuned anew, with the best lambda
  arms[0].disagreement.written = true;
  Claim claim = claim_without_figures("001.10");
  claim.tables[1] = runner.tune_weight(arms);
  const std::vector<Arm> both = {random, arms[0]};
  fill_arms(claim.tables[0], runner, both);
  const auto written = measured(&HeadTelemetry::written), ratio = measured(&HeadTelemetry::ratio);
  for (const Arm& arm : both) {
    claim.tables[2].rows.push_back(
        heads_row(arm.name, runner.runs(arm), kEnd, {written, ratio, &HeadTelemetry::entropy}));
  }
  fill_losses(claim.plots[0], runner, both);
  const std::vector<double> loss = loss_difference(runner, arms[0], random);
  predict(
      claim,
      {{paired(heads_at(runner.runs(arms[0]), kEnd, written), heads_at(runner.runs(random), kEnd, written)),
        Limit::below(0)},
       {loss, Limit::below(0)},
       {loss, Limit::within(kMargin)}});
  return claim;
}

}  // namespace mh::diversity

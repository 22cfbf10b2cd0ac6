// 001.1 to 001.3: how different heads are, from which start, and under a regulariser.
#include <fmt/format.h>

#include <utility>

#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"

namespace mh::diversity {
namespace {

struct Arms {
  Arm canonical;
  std::vector<Arm> starts;  // other initialisations
  Arm equal_dropout;        // all heads equal, dropout of the weights
  std::vector<Arm> regularised;
};

Arm start(const ArmRunner& runner, const char* name, HeadInitialisation initialisation) {
  Arm arm = runner.base(name);
  arm.model.geometry.initialisation = initialisation;
  return arm;
}

Arms make(const ArmRunner& runner) {
  using enum HeadInitialisation;
  Arms a;
  a.canonical = canonical_arm(runner);
  a.starts = {start(runner, "Xavier, fans (d, d_k)", kXavierHead),
              start(runner, "Xavier, fans (d, d)", kXavier),
              start(runner, "orthogonal by head", kOrthogonal),
              start(runner, "all heads equal", kEqual),
              start(runner, "equal but for W_i^O", kEqualInput),
              start(runner, "equal, noise of 1e-6", kEqualWithNoise),
              start(runner, "W^K a copy of W^Q", kCopiedKeys)};
  a.equal_dropout = start(runner, "all equal, weights' dropout 0.1", kEqual);
  a.equal_dropout.attention_dropout = 0.1f;

  for (const auto& [name, form] : {std::pair("subspace: cos(V_i, V_j)", Disagreement::kSubspace),
                                   std::pair("positions: |A_i * A_j|", Disagreement::kPositions),
                                   std::pair("output: cos(Att_i, Att_j)", Disagreement::kOutput)}) {
    Arm arm = runner.base(name);
    arm.disagreement = form;
    a.regularised.push_back(std::move(arm));
  }
  return a;
}

std::vector<double> telemetry(const std::vector<ArmRun>& runs, double HeadTelemetry::*number) {
  return of_runs(runs, [number](const ArmRun& run) { return run.curve.back().heads.*number; });
}

std::vector<Arm> all_starts(const Arms& a) {
  std::vector<Arm> all = {a.canonical};
  all.insert(all.end(), a.starts.begin(), a.starts.end());
  all.push_back(a.equal_dropout);
  return all;
}

std::vector<Arm> with_and_without(const Arms& a) {
  std::vector<Arm> all = {a.canonical};
  all.insert(all.end(), a.regularised.begin(), a.regularised.end());
  return all;
}

Claim from_the_start(ArmRunner& runner, const Arms& a) {
  Claim claim{
      .id = "001.1",
      .statement =
          "How alike heads are from step 0 on: the three disagreements of Li et al. 2018, the divergence of "
          "their rows, and how many heads there effectively are.",
      .original_words =
          "\"It is still not clear how we will be able to initialise those attention heads in a diverse "
          "way.\"",
      .original_statement = OriginalStatement::kNotMade,
      .trained = true};
  const auto& runs = runner.runs(a.canonical);
  Table table{"encoder self-attention, mean over seeds",
              {"update", "cos V", "A_i A_j", "cos Att", "JS", "entropy", "effective heads"},
              {}};
  Plot plot{
      "Diversity through training", "update", "effective heads", false, {{"canonical", {}, {}, {}, {}}}};
  const auto mean = [&](size_t i, double HeadTelemetry::*number) {
    return interval_of(of_runs(runs, [&](const ArmRun& run) { return run.curve[i].heads.*number; })).mean;
  };
  for (size_t i = 0; i < runs[0].curve.size(); ++i) {
    const auto cell = [&](double HeadTelemetry::*number) { return fmt::format("{:.3f}", mean(i, number)); };
    table.rows.push_back({std::to_string(runs[0].curve[i].update), cell(&HeadTelemetry::subspace),
                          cell(&HeadTelemetry::positions), cell(&HeadTelemetry::output),
                          cell(&HeadTelemetry::divergence), cell(&HeadTelemetry::entropy),
                          cell(&HeadTelemetry::effective)});
    plot.series[0].x.push_back(static_cast<double>(runs[0].curve[i].update));
    plot.series[0].y.push_back(mean(i, &HeadTelemetry::effective));
  }
  const size_t last = runs[0].curve.size() - 1;
  claim.measured = fmt::format(
      "effective heads {:.2f} at the start and {:.2f} at the end, of {}; divergence of rows {:.3f} and "
      "{:.3f}",
      mean(0, &HeadTelemetry::effective), mean(last, &HeadTelemetry::effective),
      a.canonical.model.encoder_heads, mean(0, &HeadTelemetry::divergence),
      mean(last, &HeadTelemetry::divergence));
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(std::move(plot));
  return claim;
}

Claim starts_trained(ArmRunner& runner, const Arms& a) {
  Claim claim{.id = "001.2, trained",
              .statement =
                  "Trained from those starts: heads that start equal stay equal until rounding, dropout of "
                  "the weights or noise tells them apart.",
              .trained = true};
  const std::vector<Arm> all = all_starts(a);
  claim.tables.push_back(arm_table(runner, all, "test loss"));
  Table table{"heads at the end of training",
              {"start", "cos Att", "JS", "effective heads", "first update apart"},
              {}};
  Plot plot{"Effective heads by start", "update", "effective heads", false, {}};
  std::string broke;
  for (const Arm& arm : all) {
    const auto& runs = runner.runs(arm);
    std::string first = "never";
    for (const CurvePoint& point : runs[0].curve) {
      if (point.heads.divergence > 1e-9) {
        first = std::to_string(point.update);
        break;
      }
    }
    if (arm.name == "all heads equal") broke = first;
    Series series{arm.name, {}, {}, {}, {}};
    for (const CurvePoint& point : runs[0].curve) {
      series.x.push_back(static_cast<double>(point.update));
      series.y.push_back(point.heads.effective);
    }
    plot.series.push_back(std::move(series));
    table.rows.push_back({arm.name, interval_text(interval_of(telemetry(runs, &HeadTelemetry::output))),
                          interval_text(interval_of(telemetry(runs, &HeadTelemetry::divergence))),
                          interval_text(interval_of(telemetry(runs, &HeadTelemetry::effective)), 2), first});
  }
  claim.measured = fmt::format(
      "heads that start equal are {} the points looked at; with dropout of the weights they end as {} "
      "effective heads",
      broke == "never" ? "still equal at all" : "apart from update " + broke + " on, of",
      interval_text(interval_of(telemetry(runner.runs(a.equal_dropout), &HeadTelemetry::effective)), 2));
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(std::move(plot));
  return claim;
}

Claim regularisers(ArmRunner& runner, std::vector<Arm> all) {
  runner.tune(all);
  Claim claim{.id = "001.3",
              .statement =
                  "Preserving diversity by a regulariser, loss = NLL + (lambda / h^2) sum_ij of how alike "
                  "heads i and j are, lambda = 1: what becomes of diversity and of the score. Except in the "
                  "quick size, each arm has the learning rate that gave it the lowest loss on validation.",
              .original_words =
                  "\"... and most importantly preserve this diversity during the training process.\" Li et "
                  "al. 2018: 27.64 BLEU without, 28.51 with the disagreement of subspaces.",
              .original_statement = OriginalStatement::kNotMade,
              .trained = true};
  claim.tables.push_back(arm_table(runner, all, "test loss (without the regulariser)"));
  Table table{"encoder heads at the end of training",
              {"regulariser", "cos V", "A_i A_j", "cos Att", "effective heads"},
              {}};
  std::string effective;
  for (const Arm& arm : all) {
    const auto& runs = runner.runs(arm);
    const auto cell = [&](double HeadTelemetry::*number) {
      return interval_text(interval_of(telemetry(runs, number)));
    };
    table.rows.push_back({arm.name, cell(&HeadTelemetry::subspace), cell(&HeadTelemetry::positions),
                          cell(&HeadTelemetry::output), cell(&HeadTelemetry::effective)});
    effective += fmt::format("{}{:.2f}", effective.empty() ? "" : ", ",
                             interval_of(telemetry(runs, &HeadTelemetry::effective)).mean);
  }
  const auto minus = [&](size_t i) {
    return interval_text(difference_of(losses(runner.runs(all[i])), losses(runner.runs(all[0]))));
  };
  claim.measured = fmt::format(
      "effective heads without and with the three: {}; loss minus that without: subspace {}, positions {}, "
      "output {}",
      effective, minus(1), minus(2), minus(3));
  claim.tables.push_back(std::move(table));
  return claim;
}

}  // namespace

Arm canonical_arm(const ArmRunner& runner) {
  return runner.base(fmt::format("canonical, {} heads", runner.settings().model.encoder_heads));
}

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {
      {"001.1", [](const ArmRunner& r) { return std::vector{make(r).canonical}; },
       [](ArmRunner& r) { return from_the_start(r, make(r)); }},
      {"001.2, trained", [](const ArmRunner& r) { return all_starts(make(r)); },
       [](ArmRunner& r) { return starts_trained(r, make(r)); }},
      {"001.3", [](const ArmRunner& r) { return with_and_without(make(r)); },
       [](ArmRunner& r) { return regularisers(r, with_and_without(make(r))); }, true},
      {"001.4, trained", segment_arms, segments, true},
      {"001.5", ensemble_arms, ensemble},
  };
  return kChecks;
}

}  // namespace mh::diversity

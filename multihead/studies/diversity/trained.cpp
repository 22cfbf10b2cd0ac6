#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/studies/comparison.h"
#include "multihead/studies/diversity/claims.h"

namespace mh::diversity {
namespace {

constexpr int kMembers = 4;

struct Arms {
  Arm canonical;
  std::vector<Arm> starts;  // other initialisations
  Arm equal_dropout;        // all heads equal, dropout of the weights
  std::vector<Arm> regularised;
  std::vector<Arm> cuts;     // Deil's, canonical first; equal parameters
  std::vector<Arm> members;  // of the ensemble
};

Arm start(const ArmRunner& runner, const char* name, HeadInitialisation initialisation) {
  Arm arm = runner.base(name);
  arm.model.geometry.initialisation = initialisation;
  return arm;
}

Arm cut(const ArmRunner& runner, const char* name, HeadColumns columns) {
  Arm arm = runner.base(name);
  const auto heads = static_cast<int>(columns.size());
  arm = with_heads(arm, heads);
  HeadGeometry& g = arm.model.geometry;
  g.d_key = g.d_value = runner.settings().model.d_model / runner.settings().model.encoder_heads;
  g.input = HeadInput::of_columns(std::move(columns));
  return arm;
}

Arms make(const ArmRunner& runner) {
  using enum HeadInitialisation;
  const int d = runner.settings().model.d_model, h = runner.settings().model.encoder_heads;
  Arms a;
  a.canonical = runner.base(fmt::format("canonical, {} heads", h));
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

  const int size = d / h, odd = h + 1;
  a.cuts = {a.canonical,
            cut(runner, "contiguous slices", slice_columns(h, d)),
            cut(runner, "permuted slices", permuted_slices(h, d, 1)),
            cut(runner, "overlapping segments", spread_segments(h, 2 * size, d)),
            cut(runner, "random segments", random_columns(h, 2 * size, d, 1)),
            cut(runner, "5 random segments, h not dividing d", random_columns(odd, size, d, 2))};
  int64_t most = 0;
  for (const Arm& arm : a.cuts) most = std::max(most, parameters_of(arm.model));
  for (Arm& arm : a.cuts) arm.model = with_parameters(arm.model, most);
  a.cuts[0].name = "canonical";

  for (uint64_t member = 1; member <= kMembers; ++member) {
    Arm arm = with_heads(runner.base(fmt::format("single head, d/2, member {}", member)), 1);
    arm.model.d_model = d / 2;
    arm.model.encoder_ff = arm.model.decoder_ff = runner.settings().model.encoder_ff / 2;
    arm.member = member;
    a.members.push_back(std::move(arm));
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
      .original =
          "\"It is still not clear how we will be able to initialise those attention heads in a diverse "
          "way.\"",
      .said = Said::kNotSaid,
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
                  "the weights or "
                  "noise tells them apart.",
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
    table.rows.push_back({arm.name, shown(interval_of(telemetry(runs, &HeadTelemetry::output))),
                          shown(interval_of(telemetry(runs, &HeadTelemetry::divergence))),
                          shown(interval_of(telemetry(runs, &HeadTelemetry::effective)), 2), first});
  }
  claim.measured = fmt::format(
      "heads that start equal are {} the points looked at; with dropout of the weights they end as {} "
      "effective heads",
      broke == "never" ? "still equal at all" : "apart from update " + broke + " on, of",
      shown(interval_of(telemetry(runner.runs(a.equal_dropout), &HeadTelemetry::effective)), 2));
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(std::move(plot));
  return claim;
}

Claim regularisers(ArmRunner& runner, const Arms& a) {
  Claim claim{.id = "001.3",
              .statement =
                  "Preserving diversity by a regulariser, loss = NLL + (lambda / h^2) sum_ij of how alike "
                  "heads i and j are, lambda "
                  "= 1: what becomes of diversity and of the score.",
              .original =
                  "\"... and most importantly preserve this diversity during the training process.\" Li et "
                  "al. 2018: 27.64 BLEU "
                  "without, 28.51 with the disagreement of subspaces.",
              .said = Said::kNotSaid,
              .trained = true};
  const std::vector<Arm> all = with_and_without(a);
  claim.tables.push_back(arm_table(runner, all, "test loss (without the regulariser)"));
  Table table{"encoder heads at the end of training",
              {"regulariser", "cos V", "A_i A_j", "cos Att", "effective heads"},
              {}};
  std::string effective;
  for (const Arm& arm : all) {
    const auto& runs = runner.runs(arm);
    const auto cell = [&](double HeadTelemetry::*number) {
      return shown(interval_of(telemetry(runs, number)));
    };
    table.rows.push_back({arm.name, cell(&HeadTelemetry::subspace), cell(&HeadTelemetry::positions),
                          cell(&HeadTelemetry::output), cell(&HeadTelemetry::effective)});
    effective += fmt::format("{}{:.2f}", effective.empty() ? "" : ", ",
                             interval_of(telemetry(runs, &HeadTelemetry::effective)).mean);
  }
  const auto minus = [&](size_t i) {
    return shown(difference_of(losses(runner.runs(a.regularised[i])), losses(runner.runs(a.canonical))));
  };
  claim.measured = fmt::format(
      "effective heads without and with the three: {}; loss minus that without: subspace {}, positions {}, "
      "output {}",
      effective, minus(0), minus(1), minus(2));
  claim.tables.push_back(std::move(table));
  return claim;
}

/// How evenly a head's matrices read the row: (sum of squared row norms)^2 / (d * sum of their squares), 1
/// when all rows weigh the same, k / d when only k of d do.
double evenness(Transformer& model, int heads) {
  double sum = 0;
  int count = 0;
  model.visit([&](const std::string& name, Parameter& p) {
    if (name.find("attention.w_q") == std::string::npos && name.find("attention.w_k") == std::string::npos &&
        name.find("attention.w_v") == std::string::npos)
      return;
    const int64_t width = p.value.cols() / heads;
    for (int h = 0; h < heads; ++h) {
      double squares = 0, fourth = 0;
      for (int64_t r = 0; r < p.value.rows(); ++r) {
        double row = 0;
        for (int64_t c = 0; c < width; ++c)
          row +=
              static_cast<double>(p.value(r, h * width + c)) * static_cast<double>(p.value(r, h * width + c));
        squares += row, fourth += row * row;
      }
      sum += squares * squares / (static_cast<double>(p.value.rows()) * fourth);
      ++count;
    }
  });
  return sum / count;
}

Claim segments(ArmRunner& runner, std::vector<Arm> cuts) {
  std::vector<Arm*> to_tune;
  for (Arm& arm : cuts) to_tune.push_back(&arm);
  runner.tune(to_tune);
  Claim claim{
      .id = "001.4, trained",
      .statement =
          "Deil's question: are the cuts ideal, and would random, overlapping segments find more? Six ways "
          "to cut "
          "at equal parameters (by d_ff), and at equal time; except in the quick size each arm has the "
          "learning rate that was best for it on validation.",
      .original = "Deil: \"Feels like it would give us a higher chance to find interesting relationships.\"",
      .tolerance = "the 95 % interval of contiguous minus canonical lies above 0",
      .trained = true};
  claim.tables.push_back(arm_table(runner, cuts, "equal parameters"));
  claim.tables.push_back(equal_time_table(runner, cuts, "equal time"));
  claim.plots.push_back(loss_plot(runner, cuts, "Ways to cut the embedding"));
  claim.plots.push_back(curve_plot(runner, cuts, "Ways to cut the embedding, through training"));
  Transformer fresh(cuts[0].model);
  fresh.initialise(runner.seeds()[0]);
  const int heads = cuts[0].model.encoder_heads;
  const double before = evenness(fresh, heads),
               after = evenness(*runner.trained(cuts[0], runner.seeds()[0]), heads);
  const auto minus = [&](size_t i, size_t j) {
    return difference_of(losses(runner.runs(cuts[i])), losses(runner.runs(cuts[j])));
  };
  claim.measured = fmt::format(
      "loss of contiguous slices minus canonical {}, permuted minus contiguous {}, random minus contiguous "
      "{}. "
      "\"In essence what multi-head does in training\": trained canonical heads spread over {:.0f} % of the "
      "row "
      "(a slice: {:.0f} %; at the start {:.0f} %)",
      shown(minus(1, 0)), shown(minus(2, 1)), shown(minus(4, 1)), 100 * after, 100.0 / heads, 100 * before);
  claim.verdict = above(minus(1, 0), 0);
  return claim;
}

Claim ensemble(ArmRunner& runner, const Arms& a) {
  Claim claim{.id = "001.5",
              .statement =
                  "\"Concatenating heads is a form of ensembling\": against the average of 4 single-head "
                  "models with the same "
                  "parameters together, embeddings aside.",
              .original =
                  "\"One can argue that running through the scaled dot-product attention multiple times in "
                  "parallel and "
                  "concatenating is a form of ensembling.\"",
              .said = Said::kHalfRight,
              .trained = true};
  std::vector<double> together, alone;
  for (const uint64_t seed : runner.seeds()) {
    std::vector<std::unique_ptr<Transformer>> models;
    std::vector<Transformer*> all;
    for (const Arm& member : a.members) {
      models.push_back(runner.trained(member, seed));
      all.push_back(models.back().get());
      alone.push_back(runner.test_loss(*all.back()));
    }
    together.push_back(runner.ensemble_loss(all));
  }
  const auto& whole = losses(runner.runs(a.canonical));
  claim.tables.push_back(
      {"test loss a token",
       {"model", "parameters", "loss"},
       {{"canonical, 4 heads", std::to_string(parameters_of(a.canonical.model)), shown(interval_of(whole))},
        {"a single-head model of d/2", std::to_string(parameters_of(a.members[0].model)),
         shown(interval_of(alone))},
        {"mean of 4 such", std::to_string(kMembers * parameters_of(a.members[0].model)),
         shown(interval_of(together))}}});
  const Interval difference = difference_of(together, whole);
  claim.measured = fmt::format("ensemble minus canonical {}; ensemble minus its members {:.3f}",
                               shown(difference), interval_of(together).mean - interval_of(alone).mean);
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {
      {"001.1", [](const ArmRunner& r) { return std::vector{make(r).canonical}; },
       [](ArmRunner& r) { return from_the_start(r, make(r)); }},
      {"001.2, trained", [](const ArmRunner& r) { return all_starts(make(r)); },
       [](ArmRunner& r) { return starts_trained(r, make(r)); }},
      {"001.3", [](const ArmRunner& r) { return with_and_without(make(r)); },
       [](ArmRunner& r) { return regularisers(r, make(r)); }},
      {"001.4, trained", [](const ArmRunner& r) { return make(r).cuts; },
       [](ArmRunner& r) { return segments(r, make(r).cuts); }, true},
      {"001.5",
       [](const ArmRunner& r) {
         Arms a = make(r);
         a.members.push_back(a.canonical);
         return a.members;
       },
       [](ArmRunner& r) { return ensemble(r, make(r)); }},
  };
  return kChecks;
}

}  // namespace mh::diversity

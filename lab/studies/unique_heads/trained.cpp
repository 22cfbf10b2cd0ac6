// 003: what makes heads unique? What follows from training. (003.4 is relations.cpp, 003.5 averaging.cpp.)
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "lab/studies/comparison.h"
#include "lab/studies/unique_heads/claims.h"

namespace mh::unique_heads {
namespace {

/// Equal heads stay equal (003.2), so these are one head, h times.
Arm tied_arm(const ArmRunner& runner) {
  Arm arm = runner.base("all heads equal");
  arm.model.geometry.initialisation = HeadInitialisation::kEqual;
  return arm;
}

/// Canonical, trained so that heads also read by position (docs/verbs/train.md, --embedding-init). Frozen: 003.4 says
/// why.
Arm small_embeddings(const ArmRunner& runner) {
  const EncoderDecoderConfig& base = runner.settings().model;
  Arm arm = runner.base("small first embeddings, 1.5 times the width, 3 times the updates");
  arm.embedding_scale = 0.3;
  arm.model.d_model = base.d_model * 3 / 2;
  arm.model.encoder_ff = arm.model.decoder_ff = 2 * base.encoder_ff;
  arm.updates = 3;
  if (runner.size() == StudySize::kStandard)  // 150 updates, times 3, as it was
    arm.warmup = 150 / static_cast<double>(runner.settings().warmup);
  arm.learning_rate = 0.7;
  return arm;
}

std::vector<double> divergence(const std::vector<ArmRun>& runs, size_t point) {
  return of_runs(runs, [point](const ArmRun& run) { return run.curve[point].heads.divergence; });
}

Claim distances(ArmRunner& runner) {
  const Arm free_arm = canonical_arm(runner), tied = tied_arm(runner);
  runner.prepare({free_arm, tied});
  Claim claim{
      .id = "003.2, trained",
      .statement = "The distance between heads through training.",
      .remark =
          "The divergence of two heads' rows also grows where both only become sharper; 001.1 shows the "
          "rows' entropy and other measures."};
  Plot plot{.title = "How far apart heads are",
            .x_label = "update",
            .y_label = "Jensen-Shannon divergence of two heads' rows, nats",
            .series = {telemetry_series(runner.runs(free_arm), "random start", &HeadTelemetry::divergence),
                       telemetry_series(runner.runs(tied), "equal start", &HeadTelemetry::divergence)}};
  Table table{
      "Jensen-Shannon divergence of two heads' rows, nats", {"update", "random start", "equal start"}, {}};
  const auto& first = runner.runs(free_arm)[0].curve;
  for (size_t i = 0; i < first.size(); ++i) {
    table.rows.push_back({std::to_string(first[i].update)});
    for (const Arm* arm : {&free_arm, &tied})
      table.rows.back().push_back(interval_text(interval_of(divergence(runner.runs(*arm), i)), 4));
  }
  const size_t last = first.size() - 1;
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(std::move(plot));
  add_predictions(
      claim,
      {{.statement = "By the divergence of their rows, heads that start random move apart.",
        .quantity = "divergence at the end minus at the start",
        .by_seed = paired(divergence(runner.runs(free_arm), last), divergence(runner.runs(free_arm), 0)),
        .limit = Limit::above(0)},
       {.statement = "Heads that start equal are still closer at the end than random ones were at the start.",
        .quantity = "divergence of equal heads at the end minus of random ones at the start",
        .by_seed = paired(divergence(runner.runs(tied), last), divergence(runner.runs(free_arm), 0)),
        .limit = Limit::below(0)}});
  return claim;
}

Claim wide_is_better(ArmRunner& runner) {
  const EncoderDecoderConfig& base = runner.settings().model;
  Arm canonical = canonical_arm(runner);
  Arm narrow = runner.base("Bloem narrow, one s x s"),
      fourth = runner.base("Bloem's fourth: d x d, then slices"), sliced = sliced_arm(runner),
      wide = wide_arm(runner);
  narrow.model.geometry = geometry_preset("bloem-narrow-shared", base.encoder_heads, base.d_model);
  fourth.model.geometry = geometry_preset("bloem-fourth", base.encoder_heads, base.d_model);
  std::vector<TwoStarts> arms = {two_starts(narrow), two_starts(fourth), two_starts(sliced),
                                 two_starts(wide)};
  std::vector<Arm*> all = both(arms);
  all.push_back(&canonical);
  runner.tune(all);
  const Arm &n = arms[0].equal, &w = arms[3].equal;
  const std::vector<Arm> timed_arms = {canonical, n, arms[1].equal, arms[2].equal, w};
  const std::vector<double> seconds = runner.seconds_of_update(timed_arms);
  const std::vector<Arm> timed = at_equal_time(runner, {canonical, n, w});
  Claim claim{
      .id = "003.3, trained",
      .statement =
          "\"Wide is better at the cost of memory and time\": narrow, canonical and wide heads from starts "
          "of equal variance. Bloem's own layers scale scores by 1/sqrt(d), not 1/sqrt(d_k): the usual start "
          "has that.",
      .remark =
          "(b) is about the text of this size. On real text wide heads were better than canonical ones by "
          "0.051 ± 0.016 nats a token, with twice the parameters (docs/answers/paper/split-or-project.md, "
          "as they are, equal d_model). (c) is about the few updates that the table of equal time leaves to "
          "wide heads, warmup among them: where they translate hardly a sentence exactly, (c) says nothing "
          "of longer trainings.",
      .original_words =
          "\"Wide self-attention gives better results at the cost of memory and computation time.\"",
      .original_remark =
          "The question calls the usual Transformer wide. Its heads do read the whole row, but their d_k is "
          "d/h; Bloem's wide heads have d_k = d."};
  claim.tables.push_back(starts_table(runner, canonical, arms, "as they are, equal d_model"));
  claim.tables.push_back(equal_time_table(runner, {canonical, n, w}));
  Table cost{"cost of an update; its time on one thread, measured side by side",
             {"arm", "params", "MiB kept", "CPU ms"},
             {}};
  for (size_t i = 0; i < timed_arms.size(); ++i) {
    cost.rows.push_back({timed_arms[i].name, std::to_string(runner.runs(timed_arms[i])[0].parameters),
                         fmt::format("{:.1f}", mebibytes_kept(runner, timed_arms[i])),
                         fmt::format("{:.1f}", 1e3 * seconds[i])});
  }
  claim.tables.push_back(std::move(cost));
  claim.plots.push_back(loss_plot(runner, {canonical, n, arms[1].equal, arms[2].equal, w, arms[3].usual},
                                  "Narrow and wide heads"));
  add_predictions(claim, {{.statement = "Bloem's wide heads are better than his narrow ones.",
                           .quantity = "loss of wide minus narrow",
                           .by_seed = loss_difference(runner, w, n),
                           .limit = Limit::below(0),
                           .original = OriginalSays::kSame},
                          {.statement = "Wide heads are better than canonical ones, too.",
                           .quantity = "loss of wide minus canonical",
                           .by_seed = loss_difference(runner, w, canonical),
                           .limit = Limit::below(0)},
                          {.statement = "In equal time wide heads are better than narrow ones.",
                           .quantity = "loss of wide minus narrow",
                           .by_seed = loss_difference(runner, timed[2], timed[1]),
                           .limit = Limit::below(0)}});
  claim.clauses.push_back(of_every_model(
      "Wide heads take more time than narrow ones.", "more CPU time for an update, measured side by side",
      fmt::format("{:.2f} times", seconds[4] / seconds[1]), seconds[4] > seconds[1], OriginalSays::kSame));
  claim.clauses.push_back(of_every_model(
      "Wide heads take more memory than narrow ones.", "more bytes kept for the backward pass",
      fmt::format("{:.1f} MiB against {:.1f} MiB", mebibytes_kept(runner, w), mebibytes_kept(runner, n)),
      mebibytes_kept(runner, w) > mebibytes_kept(runner, n), OriginalSays::kSame));
  return claim;
}

Claim tied_heads(ArmRunner& runner) {
  const EncoderDecoderConfig& base = runner.settings().model;
  Arm canonical = canonical_arm(runner), one = with_heads(runner.base("1 head of d/h"), 1);
  one.model.geometry.d_key = one.model.geometry.d_value = base.d_model / base.encoder_heads;
  std::vector<TwoStarts> arms = {two_starts(tied_arm(runner)), two_starts(one)};
  std::vector<Arm*> all = both(arms);
  all.push_back(&canonical);
  runner.tune(all);
  Claim claim{
      .id = "003.6, trained",
      .statement =
          "Heads that are equal and stay so, beside free ones, and beside the one head of that size to which "
          "they amount; all from starts of equal variance.",
      .original_words =
          "\"... which is a less expressive model than that of n features, and therefore usually has "
          "a larger loss function.\""};
  claim.tables.push_back(
      starts_table(runner, canonical, arms, "free heads, equal ones, and one head of that size"));
  claim.plots.push_back(loss_plot(
      runner, {canonical, arms[0].equal, arms[1].equal, arms[0].usual, arms[1].usual}, "Equal heads"));
  add_predictions(claim, {{.statement = "Equal heads are worse than free ones.",
                           .quantity = "loss of equal minus free",
                           .by_seed = loss_difference(runner, arms[0].equal, canonical),
                           .limit = Limit::above(0),
                           .original = OriginalSays::kSame},
                          {.statement = "Equal heads are as good as the one head to which they amount.",
                           .quantity = "loss of equal minus one head of d/h",
                           .by_seed = loss_difference(runner, arms[0].equal, arms[1].equal),
                           .limit = Limit::within(kMargin),
                           .original = OriginalSays::kSame}});
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {
      {"003.2, trained", distances},
      {"003.3, trained", wide_is_better},
      {"003.4", [](ArmRunner& r) { return relations(r, canonical_arm(r), small_embeddings(r)); }},
      {"003.5, trained",
       [](ArmRunner& r) {
         return r.size() == StudySize::kQuick
                    ? averaging_inhibits(r.seeds(), 4, 1000)
                    : averaging_inhibits(std::vector<uint64_t>{1, 2, 3, 4, 5}, 20, 2000);
       }},
      {"003.6, trained", tied_heads}};
  return kChecks;
}

}  // namespace mh::unique_heads

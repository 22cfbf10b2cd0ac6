// 003: what makes heads unique? What follows from training. (003.4 is relations.cpp, 003.5 averaging.cpp.)
#include <fmt/format.h>

#include "lab/studies/claim_words.h"
#include "lab/studies/comparison.h"
#include "lab/studies/unique_heads/claims.h"
#include "multihead/models/translator_shape.h"

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
  const TranslatorShape& base = runner.settings().model;
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

Claim distances(ArmRunner& runner) {
  const Arm free_arm = canonical_arm(runner), equal_arm = tied_arm(runner);
  runner.prepare({free_arm, equal_arm});
  const auto &random_start = runner.runs(free_arm), &equal_start = runner.runs(equal_arm);
  const auto divergence = [](const std::vector<ArmRun>& runs, size_t point) {
    return of_runs(runs, [point](const ArmRun& run) { return run.curve[point].heads.divergence; });
  };
  Claim claim = claim_without_figures("003.2, trained");
  claim.plots[0].series = {telemetry_series(random_start, "random start", &HeadTelemetry::divergence),
                           telemetry_series(equal_start, "equal start", &HeadTelemetry::divergence)};
  const size_t points = random_start[0].curve.size(), last = points - 1;
  for (size_t i = 0; i < points; ++i) {
    claim.tables[0].rows.push_back({std::to_string(random_start[0].curve[i].update),
                                    interval_text(divergence(random_start, i), 4),
                                    interval_text(divergence(equal_start, i), 4)});
  }
  predict(claim, {{paired(divergence(random_start, last), divergence(random_start, 0)), Limit::above(0)},
                  {paired(divergence(equal_start, last), divergence(random_start, 0)), Limit::below(0)}});
  return claim;
}

Claim wide_is_better(ArmRunner& runner) {
  const TranslatorShape& base = runner.settings().model;
  const auto bloem = [&](const char* name, const char* preset) {
    Arm arm = runner.base(name);
    arm.model.geometry = geometry_preset(preset, base.encoder_heads, base.d_model);
    return two_starts(arm);
  };
  Arm canonical = canonical_arm(runner);
  std::vector<TwoStarts> arms = {bloem("Bloem narrow, one s x s", "bloem-narrow-shared"),
                                 bloem("Bloem's fourth: d x d, then slices", "bloem-fourth"),
                                 two_starts(sliced_arm(runner)), two_starts(wide_arm(runner))};
  runner.tune(both(arms, {&canonical}));
  const Arm &narrow = arms[0].equal, &wide = arms[3].equal;
  std::vector<Arm> shown = {canonical, narrow, arms[1].equal, arms[2].equal, wide};
  const std::vector<double> seconds = runner.seconds_of_update(shown);
  const std::vector<Arm> timed = at_equal_time(runner, {canonical, narrow, wide});
  Claim claim = claim_without_figures("003.3, trained");
  fill_starts(claim.tables[0], runner, canonical, arms);
  fill_equal_time(claim.tables[1], runner, {canonical, narrow, wide});
  for (size_t i = 0; i < shown.size(); ++i) {
    claim.tables[2].rows.push_back({shown[i].name, std::to_string(runner.runs(shown[i])[0].parameters),
                                    fmt::format("{:.1f}", mebibytes_kept(runner, shown[i])),
                                    fmt::format("{:.1f}", 1e3 * seconds[i])});
  }
  shown.push_back(arms[3].usual);
  fill_losses(claim.plots[0], runner, shown);
  predict(claim, {{loss_difference(runner, wide, narrow), Limit::below(0)},
                  {loss_difference(runner, wide, canonical), Limit::below(0)},
                  {loss_difference(runner, timed[2], timed[1]), Limit::below(0)}});
  decide(claim, seconds[4] > seconds[1], fmt::format("{:.2f} times", seconds[4] / seconds[1]));
  const double of_wide = mebibytes_kept(runner, wide), of_narrow = mebibytes_kept(runner, narrow);
  decide(claim, of_wide > of_narrow, fmt::format("{:.1f} MiB against {:.1f} MiB", of_wide, of_narrow));
  return claim;
}

Claim tied_heads(ArmRunner& runner) {
  const TranslatorShape& base = runner.settings().model;
  Arm canonical = canonical_arm(runner), one = with_heads(runner.base("1 head of d/h"), 1);
  one.model.geometry.d_key = one.model.geometry.d_value = base.d_model / base.encoder_heads;
  std::vector<TwoStarts> arms = {two_starts(tied_arm(runner)), two_starts(one)};
  runner.tune(both(arms, {&canonical}));
  Claim claim = claim_without_figures("003.6, trained");
  fill_starts(claim.tables[0], runner, canonical, arms);
  fill_losses(claim.plots[0], runner,
              {canonical, arms[0].equal, arms[1].equal, arms[0].usual, arms[1].usual});
  predict(claim, {{loss_difference(runner, arms[0].equal, canonical), Limit::above(0)},
                  {loss_difference(runner, arms[0].equal, arms[1].equal), Limit::within(kMargin)}});
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

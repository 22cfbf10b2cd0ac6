// 000.6 and 000.7: heads of other number and input, trained.
#include <fmt/format.h>

#include "lab/studies/comparison.h"
#include "lab/studies/split_or_project/claims.h"

namespace mh::split_or_project {
namespace {

Claim more_heads(ArmRunner& runner) {
  const int h = runner.settings().model.encoder_heads;
  std::vector<Arm> arms = {canonical_arm(runner), with_heads(runner.base("1 head"), 1),
                           with_heads(runner.base("2 heads"), 2), with_heads(runner.base("8 heads"), 8)};
  runner.tune(arms);
  Claim claim{
      .id = "000.6",
      .statement = "Several heads of size d/h and one head of size d, at equal cost.",
      .original_words =
          "\"It is shown in [1] that multi-head attention works better.\" (Vaswani et al. 2017: h = 1 "
          "24.9 BLEU, h = 8 25.8)"};
  claim.tables.push_back(arm_table(runner, arms, "equal parameters and multiplications"));
  claim.plots.push_back(loss_plot(runner, arms, "Heads at equal cost"));
  claim.plots.push_back(curve_plot(runner, arms, "Heads at equal cost, through training"));
  add_predictions(claim, {{.statement = fmt::format("One head is worse than {}.", h),
                           .quantity = fmt::format("loss of one head minus loss of {}", h),
                           .by_seed = loss_difference(runner, arms[1], arms[0]),
                           .limit = Limit::above(0),
                           .original = OriginalSays::kSame},
                          {.statement = "One head is worse than two.",
                           .quantity = "loss of one head minus loss of two",
                           .by_seed = loss_difference(runner, arms[1], arms[2]),
                           .limit = Limit::above(0),
                           .original = OriginalSays::kSame},
                          {.statement = fmt::format("Eight heads are as good as {}.", h),
                           .quantity = fmt::format("loss of eight heads minus loss of {}", h),
                           .by_seed = loss_difference(runner, arms[3], arms[0]),
                           .limit = Limit::within(kMargin)}});
  return claim;
}

Claim three_inputs(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner);
  const Arm sliced = sliced_arm(runner), wide = wide_arm(runner), large_sliced = enlarged(sliced, wide);
  Arm large = enlarged(canonical, wide);
  std::vector<TwoStarts> arms = {two_starts(sliced), two_starts(wide), two_starts(large_sliced)};
  std::vector<Arm*> all = both(arms);
  all.insert(all.end(), {&canonical, &large});
  runner.tune(all);
  const TwoStarts &s = arms[0], &w = arms[1], &l = arms[2];
  const std::vector<Arm> timed = at_equal_time(runner, {canonical, s.equal, w.equal});

  Claim claim{
      .id = "000.7",
      .statement =
          "Heads that read a slice of the row, the whole row, and the whole row at full size (wide), from "
          "starts of equal variance. Each arm has a learning rate of its own.",
      .original_words =
          "\"Passing only a subset of the embedding vector would likely result in a worse "
          "representation.\""};
  claim.tables.push_back(starts_table(runner, canonical, {s, w}, "as they are, equal d_model"));
  claim.tables.push_back(starts_table(runner, large, {l, w}, "equal parameters, by d_ff"));
  claim.tables.push_back(equal_time_table(runner, {canonical, s.equal, w.equal}));
  Table memory{"bytes of one batch kept for the backward pass", {"arm", "MiB"}, {}};
  for (const Arm* arm : std::initializer_list<const Arm*>{&canonical, &s.equal, &w.equal}) {
    memory.rows.push_back({arm->name, fmt::format("{:.1f}", mebibytes_kept(runner, *arm))});
  }
  claim.tables.push_back(std::move(memory));
  claim.plots.push_back(loss_plot(runner, {large, l.equal, l.usual, w.equal, w.usual},
                                  "What a head reads, at equal parameters"));
  claim.plots.push_back(
      curve_plot(runner, {canonical, s.equal, w.equal}, "What a head reads, through training"));
  add_predictions(claim, {{.statement = "At equal parameters sliced heads are worse than canonical ones.",
                           .quantity = "loss of sliced minus canonical",
                           .by_seed = loss_difference(runner, l.equal, large),
                           .limit = Limit::above(0),
                           .original = OriginalSays::kSame},
                          {.statement = "In equal time sliced heads are worse than canonical ones.",
                           .quantity = "loss of sliced minus canonical",
                           .by_seed = loss_difference(runner, timed[1], timed[0]),
                           .limit = Limit::above(0),
                           .original = OriginalSays::kSame}});
  claim.clauses.push_back(
      measured_only("Wide heads beside canonical ones.",
                    fmt::format("loss of wide minus canonical: at equal parameters {}, in equal time {}",
                                interval_text(interval_of(loss_difference(runner, w.equal, large))),
                                interval_text(interval_of(loss_difference(runner, timed[2], timed[0]))))));
  claim.clauses.push_back(measured_only(
      "The start matters: from their usual start sliced heads begin with four times the variance of scores.",
      fmt::format(
          "at equal parameters, loss of sliced from its usual start minus canonical {}, minus sliced from "
          "the equal start {}",
          interval_text(interval_of(loss_difference(runner, l.usual, large))),
          interval_text(interval_of(loss_difference(runner, l.usual, l.equal))))));
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {
      {"000.6", more_heads}, {"000.7", three_inputs}, {"000.8", fixed_head_size, true}};
  return kChecks;
}

}  // namespace mh::split_or_project

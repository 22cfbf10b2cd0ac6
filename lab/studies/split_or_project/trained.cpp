// 000.6 to 000.8: heads of other number, input and size, trained.
#include <fmt/format.h>

#include "lab/studies/claim_words.h"
#include "lab/studies/comparison.h"
#include "lab/studies/split_or_project/claims.h"

namespace mh::split_or_project {
namespace {

Arm of_heads(const ArmRunner& runner, int heads) {
  return with_heads(runner.base(heads == 1 ? "1 head" : fmt::format("{} heads", heads)), heads);
}

/// loss(a) - loss(b)
std::string difference_text(ArmRunner& runner, const Arm& a, const Arm& b) {
  return interval_text(loss_difference(runner, a, b));
}

Claim more_heads(ArmRunner& runner) {
  std::vector<Arm> arms = {canonical_arm(runner), of_heads(runner, 1), of_heads(runner, 2),
                           of_heads(runner, 8)};
  runner.tune(arms);
  Claim claim =
      claim_without_figures("000.6", {{"heads", std::to_string(runner.settings().model.encoder_heads)}});
  fill_arms(claim.tables[0], runner, arms);
  fill_losses(claim.plots[0], runner, arms);
  fill_curves(claim.plots[1], runner, arms);
  predict(claim, {{loss_difference(runner, arms[1], arms[0]), Limit::above(0)},
                  {loss_difference(runner, arms[1], arms[2]), Limit::above(0)},
                  {loss_difference(runner, arms[3], arms[0]), Limit::within(kMargin)}});
  return claim;
}

Claim three_inputs(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner);
  const Arm sliced = sliced_arm(runner), wide = wide_arm(runner), large_sliced = enlarged(sliced, wide);
  Arm large = enlarged(canonical, wide);
  std::vector<TwoStarts> arms = {two_starts(sliced), two_starts(wide), two_starts(large_sliced)};
  runner.tune(both(arms, {&canonical, &large}));
  const TwoStarts &s = arms[0], &w = arms[1], &l = arms[2];
  const std::vector<Arm> three = {canonical, s.equal, w.equal}, timed = at_equal_time(runner, three);

  Claim claim = claim_without_figures("000.7");
  fill_starts(claim.tables[0], runner, canonical, {s, w});
  fill_starts(claim.tables[1], runner, large, {l, w});
  fill_equal_time(claim.tables[2], runner, three);
  for (const Arm& arm : three)
    claim.tables[3].rows.push_back({arm.name, fmt::format("{:.1f}", mebibytes_kept(runner, arm))});
  fill_losses(claim.plots[0], runner, {large, l.equal, l.usual, w.equal, w.usual});
  fill_curves(claim.plots[1], runner, three);
  predict(claim, {{loss_difference(runner, l.equal, large), Limit::above(0)},
                  {loss_difference(runner, timed[1], timed[0]), Limit::above(0)}});
  measure(claim,
          fmt::format("loss of wide minus canonical: at equal parameters {}, in equal time {}",
                      difference_text(runner, w.equal, large), difference_text(runner, timed[2], timed[0])));
  measure(claim,
          fmt::format("at equal parameters, loss of sliced from its usual start minus canonical {}, minus "
                      "sliced from the equal start {}",
                      difference_text(runner, l.usual, large), difference_text(runner, l.usual, l.equal)));
  measure(claim,
          fmt::format("loss of wide minus sliced: as they are {}, at equal parameters {}, in equal time {}",
                      difference_text(runner, w.equal, s.equal), difference_text(runner, w.equal, l.equal),
                      difference_text(runner, timed[2], timed[1])));
  return claim;
}

/// More heads of d/h, or more heads of a fixed size. The last table is published: tables 1 and 2 (A) of
/// Bhojanapalli et al. 2020 (arXiv 2002.07028). The size of the first is 1024, of the second 512.
Claim fixed_head_size(ArmRunner& runner) {
  const Arm canonical = canonical_arm(runner);
  const int usual = canonical.model.encoder_heads, size = canonical.model.d_model / usual;
  const std::vector<int> counts = {1, 2, 4, 8, 16};
  std::vector<Arm> arms;
  std::vector<size_t> divided, fixed;  // of each count: its arms
  for (const int heads : counts) {
    Arm arm = heads == usual ? canonical : of_heads(runner, heads);
    divided.push_back(arms.size());
    arms.push_back(arm);
    if (heads != usual) {
      arm.name = fmt::format("{} of d_k = {}", arm.name, size);
      arm.model.geometry.d_key = arm.model.geometry.d_value = size;
      arm.start = Start::kEqualVariances;
      arms.push_back(arm);
    }
    fixed.push_back(arms.size() - 1);
  }
  const Arm& many = arms[fixed.back()];
  Arm large = enlarged(canonical, many);
  std::vector<Arm*> all = {&large};
  for (Arm& arm : arms) all.push_back(&arm);
  runner.tune(all);
  Claim claim = claim_without_figures("000.8", {{"size", std::to_string(size)}});
  fill_arms(claim.tables[0], runner, arms);
  fill_arms(claim.tables[1], runner, {large, many});
  Table& by_count = claim.tables[2];
  Plot& plot = claim.plots[0];
  plot.series = {{.name = by_count.columns[1]}, {.name = by_count.columns[2]}};
  for (size_t i = 0; i < counts.size(); ++i) {
    const std::vector<double> of_divided = losses(runner.runs(arms[divided[i]])),
                              of_fixed = losses(runner.runs(arms[fixed[i]]));
    by_count.rows.push_back({std::to_string(counts[i]), interval_text(of_divided), interval_text(of_fixed)});
    add_point(plot.series[0], counts[i], of_divided);
    add_point(plot.series[1], counts[i], of_fixed);
  }
  predict(claim, {{loss_difference(runner, arms[fixed[4]], arms[fixed[2]]), Limit::below(0)},
                  {loss_difference(runner, arms[divided[4]], arms[divided[2]]), Limit::above(0)},
                  {loss_difference(runner, many, large), Limit::below(0)}});
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {
      {"000.6", more_heads}, {"000.7", three_inputs}, {"000.8", fixed_head_size, true}};
  return kChecks;
}

}  // namespace mh::split_or_project

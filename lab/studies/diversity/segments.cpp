// 001.4: Deil's question, trained.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "lab/studies/claim_words.h"
#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"

namespace mh::diversity {
namespace {

/// Of all columns of all attentions, those that no head of the attention reads, in %: the mean over seeds.
double unread_percent(const ArmRunner& runner, const Arm& arm) {
  double unread = 0, all = 0;
  for (const uint64_t seed : runner.seeds()) {
    for (const OwnHeads& own : config_of(arm, seed).own_heads) {
      std::set<int32_t> read;
      for (const auto& columns : own.geometry.input.columns) read.insert(columns.begin(), columns.end());
      unread += arm.model.d_model - static_cast<double>(read.size());
      all += arm.model.d_model;
    }
  }
  return all > 0 ? 100 * unread / all : 0;
}

}  // namespace

Claim segments(ArmRunner& runner) {
  const int d = runner.settings().model.d_model, h = runner.settings().model.encoder_heads, size = d / h;
  Arm canonical = canonical_arm(runner);
  enum : size_t { kContiguous, kPermuted, kRandom, kOverlapping, kRandomDouble, kFive };
  std::vector<TwoStarts> cuts;
  // Heads of d / h numbers that read columns drawn for each attention and each seed. A canonical head reads all rows,
  // so no cut has more parameters, but for that of five heads.
  const auto add = [&](const char* name, int heads, std::function<HeadColumns(uint64_t draw)> columns) {
    Arm arm = with_heads(runner.base(name), heads);
    arm.model.geometry.d_key = arm.model.geometry.d_value = size;
    arm.columns = std::move(columns);
    cuts.push_back(two_starts(as_large_as(std::move(arm), canonical)));
  };
  add("contiguous slices", h, [=](uint64_t) { return slice_columns(h, d); });
  add("permuted slices", h, [=](uint64_t draw) { return permuted_slices(h, d, draw); });
  add("random segments", h, [=](uint64_t draw) { return random_columns(h, size, d, draw); });
  add("overlapping segments, twice the length", h, [=](uint64_t) { return spread_segments(h, 2 * size, d); });
  add("random segments, twice the length", h,
      [=](uint64_t draw) { return random_columns(h, 2 * size, d, draw); });
  add("5 random segments, h not dividing d", h + 1,
      [=](uint64_t draw) { return random_columns(h + 1, size, d, draw); });
  runner.tune(both(cuts, {&canonical}));

  Claim claim = claim_without_figures("001.4, trained");
  fill_starts(claim.tables[0], runner, canonical, cuts);
  std::vector<Arm> equal = {canonical};
  for (const TwoStarts& one : cuts) {
    equal.push_back(one.equal);
    claim.tables[2].rows.push_back(
        {one.equal.name, fmt::format("{:.1f}", unread_percent(runner, one.equal))});
  }
  const std::vector<Arm> timed = at_equal_time(runner, equal);
  fill_equal_time(claim.tables[1], runner, equal);
  fill_losses(claim.plots[0], runner, equal);
  fill_curves(claim.plots[1], runner, equal);

  const auto minus = [&](size_t a, size_t b) {
    return loss_difference(runner, cuts[a].equal, cuts[b].equal);
  };
  predict(claim, {{loss_difference(runner, cuts[kContiguous].equal, canonical), Limit::above(0)},
                  {loss_difference(runner, timed[1 + kContiguous], timed[0]), Limit::above(0)},
                  {minus(kPermuted, kContiguous), Limit::within(kMargin)},
                  {minus(kRandom, kContiguous), Limit::below(0)},
                  {minus(kRandomDouble, kOverlapping), Limit::below(0)}});
  measure(claim, fmt::format("loss minus canonical {}",
                             interval_text(loss_difference(runner, cuts[kFive].equal, canonical))));
  return claim;
}

}  // namespace mh::diversity

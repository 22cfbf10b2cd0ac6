#include <fmt/format.h>

#include <algorithm>

#include "lab/studies/comparison.h"
#include "lab/studies/split_or_project/claims.h"

namespace mh::split_or_project {
namespace {

struct Arms {
  Arm canonical, one, two, eight;
  Arm sliced, wide;
  Arm canonical_equal, sliced_equal;  // with the parameters of the wide one, by d_ff
};

Arms make(const ArmRunner& runner) {
  Arms a;
  const int d = runner.settings().model.d_model, h = runner.settings().model.encoder_heads;
  a.canonical = runner.base(fmt::format("canonical, {} heads", h));
  a.one = with_heads(runner.base("1 head"), 1);
  a.two = with_heads(runner.base("2 heads"), 2);
  a.eight = with_heads(runner.base("8 heads"), 8);
  HeadGeometry slices = runner.settings().model.geometry, wide = slices;
  slices.input = HeadInput::slices();
  wide.d_key = wide.d_value = d;
  a.sliced = with_geometry(runner.base("sliced input"), slices);
  a.wide = with_geometry(runner.base("wide, d_k = d"), wide);
  const int64_t most = parameters_of(a.wide.model);
  a.canonical_equal = a.canonical;
  a.canonical_equal.name += ", larger d_ff";
  a.canonical_equal.model = with_parameters(a.canonical.model, most);
  a.sliced_equal = a.sliced;
  a.sliced_equal.name += ", larger d_ff";
  a.sliced_equal.model = with_parameters(a.sliced.model, most);
  return a;
}

Claim more_heads(ArmRunner& runner, const Arms& a) {
  Claim claim{.id = "000.6",
              .statement = "Several heads of d/h are better than one of d at equal cost.",
              .original_words =
                  "\"It is shown in [1] that multi-head attention works better.\" (Vaswani et al.: h = 1 "
                  "24.9 BLEU, h = 8 25.8)",
              .original_statement = OriginalStatement::kRight,
              .tolerance = "the 95 % interval of the loss of h = 1 minus that of the base lies above 0",
              .trained = true};
  const Interval gain = difference_of(losses(runner.runs(a.one)), losses(runner.runs(a.canonical)));
  claim.tables.push_back(
      arm_table(runner, {a.one, a.two, a.canonical, a.eight}, "equal parameters and multiplications"));
  claim.plots.push_back(curve_plot(runner, {a.one, a.two, a.canonical, a.eight}, "Heads at equal cost"));
  claim.measured = fmt::format("loss of one head minus loss of {}: {}, over {} seeds",
                               a.canonical.model.encoder_heads, interval_text(gain), runner.seeds().size());
  claim.verdict = above(gain, 0);
  return claim;
}

Claim three_ways(ArmRunner& runner, Arms a) {
  runner.tune({&a.canonical, &a.sliced, &a.wide, &a.canonical_equal, &a.sliced_equal});
  Claim claim{
      .id = "000.7",
      .statement =
          "Sliced, canonical and wide heads on the same data: as they are, at equal parameters, at equal "
          "time. Except in the quick size, each arm has the learning rate that gave it the lowest loss on "
          "validation.",
      .original_words =
          "\"Passing only a subset of the embedding vector would likely result in a worse representation.\"",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "at equal parameters the 95 % interval of sliced minus canonical lies above 0",
      .trained = true};
  claim.tables.push_back(arm_table(runner, {a.canonical, a.sliced, a.wide}, "as they are, equal d_model"));
  claim.tables.push_back(
      arm_table(runner, {a.canonical_equal, a.sliced_equal, a.wide}, "equal parameters, by d_ff"));
  claim.tables.push_back(equal_time_table(runner, {a.canonical, a.sliced, a.wide},
                                          "equal time: when the quickest arm had ended"));
  Table memory{"bytes of one batch kept for the backward pass", {"arm", "MiB"}, {}};
  for (const Arm* arm : {&a.canonical, &a.sliced, &a.wide}) {
    memory.rows.push_back(
        {arm->name,
         fmt::format("{:.1f}", static_cast<double>(runner.runs(*arm)[0].activation_bytes) / (1 << 20))});
  }
  claim.tables.push_back(std::move(memory));
  claim.plots.push_back(curve_plot(runner, {a.canonical, a.sliced, a.wide, a.canonical_equal, a.sliced_equal},
                                   "What a head sees"));
  const Interval cost =
      difference_of(losses(runner.runs(a.sliced_equal)), losses(runner.runs(a.canonical_equal)));
  const Interval wide = difference_of(losses(runner.runs(a.wide)), losses(runner.runs(a.canonical_equal)));
  claim.measured = fmt::format("at equal parameters: sliced minus canonical {}, wide minus canonical {}",
                               interval_text(cost), interval_text(wide));
  claim.verdict = above(cost, 0);
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {
      {"000.6",
       [](const ArmRunner& r) {
         const Arms a = make(r);
         return std::vector{a.canonical, a.one, a.two, a.eight};
       },
       [](ArmRunner& r) { return more_heads(r, make(r)); }},
      {"000.7",
       [](const ArmRunner& r) {
         const Arms a = make(r);
         return std::vector{a.canonical, a.sliced, a.wide, a.canonical_equal, a.sliced_equal};
       },
       [](ArmRunner& r) { return three_ways(r, make(r)); }, true},
  };
  return kChecks;
}

}  // namespace mh::split_or_project

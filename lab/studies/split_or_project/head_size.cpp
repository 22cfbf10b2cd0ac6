// 000.8: more heads of d/h, or more heads of a fixed size (Bhojanapalli et al. 2020).
#include <fmt/format.h>

#include "lab/studies/comparison.h"
#include "lab/studies/split_or_project/claims.h"

namespace mh::split_or_project {
namespace {

/// Tables 1 and 2 (A) of arXiv 2002.07028. The size of the first is 1024, of the second 512.
Table published() {
  return {"Bhojanapalli et al. 2020: BERT, F1 on SQuAD and accuracy on MNLI in %",
          {"h", "F1, d_k = 1024/h", "MNLI", "F1, d_k = 128", "MNLI"},
          {{"8", "90.89", "85.0", "89.60", "83.5"},
           {"12", "", "", "90.25", "84.2"},
           {"16", "90.61", "84.5", "90.43", "83.9"},
           {"32", "90.45", "84.4", "90.95", "84.9"}}};
}

}  // namespace

Claim fixed_head_size(ArmRunner& runner) {
  const Arm canonical = canonical_arm(runner);
  const int d = canonical.model.d_model, usual = canonical.model.encoder_heads, size = d / usual;
  std::vector<Arm> arms;
  std::vector<int> counts;
  std::vector<size_t> divided, fixed;
  for (const int heads : {1, 2, 4, 8, 16}) {
    counts.push_back(heads);
    divided.push_back(arms.size());
    Arm arm = heads == usual ? canonical : with_heads(runner.base(fmt::format("{} heads", heads)), heads);
    if (heads == 1) arm.name = "1 head";
    arms.push_back(arm);
    if (heads == usual) {
      fixed.push_back(arms.size() - 1);
      continue;
    }
    fixed.push_back(arms.size());
    arm.name = fmt::format("{} of d_k = {}", arm.name, size);
    arm.model.geometry.d_key = arm.model.geometry.d_value = size;
    arm.start = Start::kEqualVariances;
    arms.push_back(arm);
  }
  const Arm& many = arms[fixed.back()];
  Arm large = enlarged(canonical, many);
  std::vector<Arm*> all = {&large};
  for (Arm& arm : arms) all.push_back(&arm);
  runner.tune(all);
  Claim claim{
      .id = "000.8",
      .statement = fmt::format("The number of heads, when each has d/h numbers and when each has {}.", size),
      .remark =
          "More heads of a fixed size are also more parameters. (c) holds these equal; it was added after "
          "the published models were trained, with the limit of all such comparisons, and counts in the "
          "correction of the others.",
      .original_words =
          "Bhojanapalli et al. 2020: with heads of d/h, more heads end in a low-rank bottleneck; with heads "
          "of a fixed size a model goes on gaining from more of them.",
      .original_remark = "These words do not speak of models with equal parameters; (c) does."};
  claim.tables.push_back(arm_table(runner, arms, "from starts of equal variance"));
  claim.tables.push_back(arm_table(runner, {large, many}, "equal parameters, by d_ff"));
  Table table{"test loss by the number of heads", {"h", "d_k = d/h", fmt::format("d_k = {}", size)}, {}};
  Plot plot{.title = "More heads of d/h, and more heads of a fixed size",
            .x_label = "heads",
            .y_label = "test loss a token",
            .log_x = true,
            .series = {{.name = "d_k = d/h"}, {.name = fmt::format("d_k = {}", size)}}};
  for (size_t i = 0; i < counts.size(); ++i) {
    table.rows.push_back({std::to_string(counts[i]),
                          interval_text(interval_of(losses(runner.runs(arms[divided[i]])))),
                          interval_text(interval_of(losses(runner.runs(arms[fixed[i]]))))});
    add_point(plot.series[0], counts[i], losses(runner.runs(arms[divided[i]])));
    add_point(plot.series[1], counts[i], losses(runner.runs(arms[fixed[i]])));
  }
  claim.tables.push_back(std::move(table));
  claim.tables.push_back(published());
  claim.plots.push_back(std::move(plot));
  const auto minus = [&](size_t a, size_t b) { return loss_difference(runner, arms[a], arms[b]); };
  add_predictions(
      claim, {{.statement = fmt::format("16 heads of {} are better than 4.", size),
               .quantity = "loss of 16 minus 4 heads of the fixed size",
               .by_seed = minus(fixed[4], fixed[2]),
               .limit = Limit::below(0),
               .original = OriginalSays::kSame},
              {.statement = "16 heads of d/16 are worse than 4 of d/4.",
               .quantity = "loss of 16 minus 4 heads of d/h",
               .by_seed = minus(divided[4], divided[2]),
               .limit = Limit::above(0),
               .original = OriginalSays::kSame},
              {.statement = fmt::format("At equal parameters, too, 16 heads of {} are better than 4.", size),
               .quantity = "loss of 16 heads of the fixed size minus 4 with a larger d_ff",
               .by_seed = loss_difference(runner, many, large),
               .limit = Limit::below(0)}});
  return claim;
}

}  // namespace mh::split_or_project

// 001.1: how different heads are, from the start on.
#include <fmt/format.h>

#include <functional>
#include <utility>

#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"

namespace mh::diversity {
namespace {

Claim from_the_start(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner);
  runner.tune({&canonical});
  Claim claim{
      .id = "001.1",
      .statement = "How alike heads are, from the start to the end of training.",
      .remark =
          "The divergence of two heads' rows also grows where both only become sharper (the table has their "
          "entropy), and no comparison at equal entropy was made. So (b) does not show that heads come to "
          "look at other places. (d) asks the same by A_i A_j, the likeness that 001.3 penalises. It was "
          "added after the published models were trained, with the limit of all such comparisons, and counts "
          "in the correction of the others.",
      .original_words =
          "\"It is still not clear how we will be able to initialise those attention heads in a diverse "
          "way.\"",
      .original_remark = "It is a question; 001.2 answers it."};
  const auto& runs = runner.runs(canonical);
  const size_t last = runs[0].curve.size() - 1;
  const auto at = [&](size_t i, const auto& number) {
    return of_runs(runs, [&](const ArmRun& run) { return std::invoke(number, run.curve[i].heads); });
  };
  Table table{"encoder self-attention: means over heads, sentences and seeds, with 95 % intervals over seeds",
              {"update", "cos V", "A_i A_j", "cos Att", "JS, nats", "entropy", "distance"},
              {}};
  Plot plot{.title = "How far apart heads are, through training",
            .x_label = "update",
            .y_label = "Jensen-Shannon divergence of two heads' rows, nats",
            .series = {telemetry_series(runs, "random start", &HeadTelemetry::divergence)}};
  for (size_t i = 0; i <= last; ++i) {
    const auto cell = [&](const auto& number) { return interval_text(interval_of(at(i, number))); };
    table.rows.push_back({std::to_string(runs[0].curve[i].update), cell(&HeadTelemetry::subspace),
                          cell(&HeadTelemetry::positions), cell(&HeadTelemetry::output),
                          cell(&HeadTelemetry::divergence), cell(&HeadTelemetry::entropy),
                          cell(&HeadTelemetry::distance)});
  }
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(std::move(plot));
  add_predictions(
      claim, {{.statement = "Heads differ from the start: random projections suffice.",
               .quantity = "distance of two heads' outputs at the start (1 - cosine)",
               .by_seed = at(0, &HeadTelemetry::distance),
               .limit = Limit::above(0.5)},
              {.statement = "By the divergence of their rows, training moves heads apart, not together.",
               .quantity = "divergence of their rows at the end minus at the start",
               .by_seed = paired(at(last, &HeadTelemetry::divergence), at(0, &HeadTelemetry::divergence)),
               .limit = Limit::above(0)},
              {.statement = "Training does not make the heads' outputs alike.",
               .quantity = "distance of their outputs at the end minus at the start",
               .by_seed = paired(at(last, &HeadTelemetry::distance), at(0, &HeadTelemetry::distance)),
               .limit = Limit::above(-0.1)},
              {.statement = "By A_i A_j, too, training moves heads apart, not together.",
               .quantity = "A_i A_j of two heads at the end minus at the start",
               .by_seed = paired(at(last, &HeadTelemetry::positions), at(0, &HeadTelemetry::positions)),
               .limit = Limit::below(0)}});
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {{"001.1", from_the_start},
                                             {"001.2, trained", starts_trained},
                                             {"001.3", regularisers},
                                             {"001.4, trained", segments},
                                             {"001.5", ensemble}};
  return kChecks;
}

}  // namespace mh::diversity

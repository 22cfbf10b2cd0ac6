// 002.9: heads that share W^Q and W^K (Cordonnier et al. 2020), by the size of what they share.
#include <fmt/format.h>

#include "lab/studies/comparison.h"
#include "lab/studies/two_matrices_or_one/claims.h"

namespace mh::two_matrices_or_one {
namespace {

/// github.com/epfml/collaborative-attention, the table of its experiments in translation. 16 heads of 64 are
/// canonical there.
Table published() {
  return {"Cordonnier et al. 2020: BLEU on WMT14 En-De",
          {"D_k", "of the usual 1024", "heads of D_k/h", "collaborative"},
          {{"1024", "1", "27.8", ""},
           {"256", "0.25", "27.7", "27.8"},
           {"128", "0.125", "27.4", "27.8"},
           {"64", "0.0625", "26.6", "27.3"},
           {"32", "0.03125", "25.5", "27.1"}}};
}

}  // namespace

Claim shared_keys(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner);
  const int d = canonical.model.d_model, heads = canonical.model.encoder_heads;
  std::vector<Arm> arms = {canonical};
  std::vector<std::pair<size_t, size_t>> pairs;  // concatenated, shared: of equal size
  for (const int size : {d, d / 2, d / 4, d / 8}) {
    size_t concatenated = 0;
    if (size != d) {
      concatenated = arms.size();
      arms.push_back(runner.base(fmt::format("{} heads of d_k = {}", heads, size / heads)));
      arms.back().model.geometry.d_key = size / heads;
      arms.back().model.geometry.d_value = d / heads;
      arms.back().start = Start::kEqualVariances;
    }
    pairs.emplace_back(concatenated, arms.size());
    arms.push_back(runner.base(fmt::format("collaborative, D_k = {}", size)));
    HeadGeometry& g = arms.back().model.geometry;
    g.scores = Scores::kCollaborative;
    g.shared_size = size;
    g.d_key = g.d_value = d / heads;
    arms.back().start = Start::kEqualVariances;
  }
  runner.tune(arms);
  Claim claim{
      .id = "002.9",
      .statement = fmt::format(
          "Heads need not each have W^Q and W^K of their own: they can share both, each with a mixing vector "
          "(Cordonnier et al. 2020). The size D_k of what {} heads share, beside {} heads of D_k/{} each.",
          heads, heads, heads),
      .remark =
          "An earlier version took half of d for the paper's size; its smallest sizes are a quarter and "
          "less, "
          "as the authors' table below shows. (b) was added for that after the models were trained, and "
          "counts in the correction of the others.",
      .original_words =
          "Cordonnier et al. 2020 (WMT14 En-De): 27.8 BLEU for 16 canonical heads of 64, D_k = 1024. With a "
          "quarter of it, 256, heads that share it have 27.8, heads that divide it 27.7; with an eighth 27.8 "
          "and 27.4."};
  claim.tables.push_back(arm_table(runner, arms, "from starts of equal variance; d_v is d/h throughout"));
  Table table{"the paper's sweep in miniature: loss minus that of canonical heads, and BLEU",
              {"D_k", "of d", "heads of D_k/h", "collaborative", "BLEU", "BLEU, collaborative"},
              {}};
  Plot plot{.title = "Sharing queries and keys",
            .x_label = "D_k",
            .y_label = "test loss a token",
            .log_x = true,
            .series = {{.name = "heads of D_k/h"}, {.name = "collaborative"}}};
  const auto bleu = [&](const Arm& arm) {
    return of_runs(runner.runs(arm), [](const ArmRun& run) { return run.bleu; });
  };
  for (size_t i = pairs.size(); i-- > 0;) {
    const auto [own, shared] = pairs[i];
    const int size = arms[shared].model.geometry.shared_size;
    table.rows.insert(
        table.rows.begin(),
        {std::to_string(size), fmt::format("{:g}", static_cast<double>(size) / d),
         interval_text(interval_of(loss_difference(runner, arms[own], arms[0]))),
         interval_text(interval_of(loss_difference(runner, arms[shared], arms[0]))),
         interval_text(interval_of(bleu(arms[own])), 1), interval_text(interval_of(bleu(arms[shared])), 1)});
    add_point(plot.series[0], size, losses(runner.runs(arms[own])));
    add_point(plot.series[1], size, losses(runner.runs(arms[shared])));
  }
  claim.tables.push_back(std::move(table));
  claim.tables.push_back(published());
  claim.plots.push_back(std::move(plot));
  const auto minus = [&](size_t a, size_t b) { return loss_difference(runner, arms[a], arms[b]); };
  add_predictions(claim,
                  {{.statement = "Heads that share half of the usual size are as good as canonical ones.",
                    .quantity = "loss of collaborative at d/2 minus canonical",
                    .by_seed = minus(pairs[1].second, 0),
                    .limit = Limit::within(kMargin)},
                   {.statement = "Heads that share a quarter are as good as canonical ones.",
                    .quantity = "loss of collaborative at d/4 minus canonical",
                    .by_seed = minus(pairs[2].second, 0),
                    .limit = Limit::within(kMargin),
                    .original = OriginalSays::kSame},
                   {.statement = "Heads that share an eighth are better than heads that divide an eighth.",
                    .quantity = "loss of collaborative at d/8 minus heads of d_k = d/(8 h)",
                    .by_seed = minus(pairs[3].second, pairs[3].first),
                    .limit = Limit::below(0),
                    .original = OriginalSays::kSame}});
  return claim;
}

}  // namespace mh::two_matrices_or_one

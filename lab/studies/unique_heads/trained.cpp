#include <fmt/format.h>

#include <algorithm>

#include "lab/studies/comparison.h"
#include "lab/studies/unique_heads/claims.h"

namespace mh::unique_heads {
namespace {

struct Arms {
  Arm canonical, tied, one_small, wide, sliced, narrow_shared;
  Arm small_embeddings;  // canonical, trained so that heads also read by position (docs/verbs/train.md,
                         // --embedding-init)
};
Arms make(const ArmRunner& runner) {
  const EncoderDecoderConfig& base = runner.settings().model;
  Arms a;
  a.canonical = runner.base(fmt::format("canonical, {} heads", base.encoder_heads));
  a.tied = runner.base("all heads equal");  // equal heads stay equal (003.2)
  a.tied.model.geometry.initialisation = HeadInitialisation::kEqual;
  a.one_small = with_heads(runner.base("1 head of d/h"), 1);
  a.one_small.model.geometry.d_key = a.one_small.model.geometry.d_value = base.d_model / base.encoder_heads;
  a.wide = runner.base("wide, d_k = d");
  a.wide.model.geometry.d_key = a.wide.model.geometry.d_value = base.d_model;
  a.sliced = runner.base("sliced input");
  a.sliced.model.geometry.input = HeadInput::slices();
  a.small_embeddings = runner.base("small first embeddings, 1.5 times the width, 3 times the updates");
  a.small_embeddings.embedding_scale = 0.3;
  a.small_embeddings.model.d_model = base.d_model * 3 / 2;
  a.small_embeddings.model.encoder_ff = a.small_embeddings.model.decoder_ff = 2 * base.encoder_ff;
  a.small_embeddings.updates = 3;
  a.small_embeddings.learning_rate = 0.7;
  a.narrow_shared = runner.base("Bloem narrow, one s x s");
  a.narrow_shared.model.geometry = geometry_preset("bloem-narrow-shared", base.encoder_heads, base.d_model);
  return a;
}

Claim distances(ArmRunner& runner, const Arms& a) {
  Claim claim{
      .id = "003.2, trained", .statement = "The distance between heads through training.", .trained = true};
  const auto& free = runner.runs(a.canonical);
  const auto& tied = runner.runs(a.tied);
  Table table{"Jensen-Shannon divergence of two heads' rows, nats, first seed",
              {"update", "random start", "equal start"},
              {}};
  Plot plot{"How far apart heads are",
            "update",
            "divergence, nats",
            false,
            {{"random start", {}, {}, {}, {}}, {"equal start", {}, {}, {}, {}}}};
  for (size_t i = 0; i < free[0].curve.size(); ++i) {
    const CurvePoint &f = free[0].curve[i], &t = tied[0].curve[i];
    table.rows.push_back({std::to_string(f.update), fmt::format("{:.4f}", f.heads.divergence),
                          fmt::format("{:.2g}", t.heads.divergence)});
    plot.series[0].x.push_back(static_cast<double>(f.update)), plot.series[0].y.push_back(f.heads.divergence);
    plot.series[1].x.push_back(static_cast<double>(t.update)), plot.series[1].y.push_back(t.heads.divergence);
  }
  claim.measured = fmt::format("from a random start {:.3f} nats at the end, from an equal start {:.2g}",
                               free[0].curve.back().heads.divergence, tied[0].curve.back().heads.divergence);
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(std::move(plot));
  return claim;
}

Claim wide_is_better(ArmRunner& runner, Arms a) {
  runner.tune({&a.canonical, &a.narrow_shared, &a.sliced, &a.wide});
  Claim claim{.id = "003.3, trained",
              .statement =
                  "\"Wide is better at the cost of memory and time\": score, parameters, time. Except in the "
                  "quick size, "
                  "each arm has the learning rate that gave it the lowest loss on validation.",
              .original_words =
                  "\"Wide self-attention gives better results at the cost of memory and computation time.\"",
              .original_statement = OriginalStatement::kHalfRight,
              .trained = true};
  claim.tables.push_back(arm_table(runner, {a.canonical, a.narrow_shared, a.sliced, a.wide},
                                   "as they are (narrow, sliced and wide heads start with scores of another "
                                   "variance than canonical ones)"));
  const auto wide = losses(runner.runs(a.wide)), canonical = losses(runner.runs(a.canonical));
  int lower = 0;
  for (size_t i = 0; i < wide.size(); ++i) lower += wide[i] < canonical[i];
  claim.measured = fmt::format(
      "loss of wide minus canonical {}, lower for {} of {} seeds; of Bloem's narrow minus canonical {}",
      interval_text(difference_of(wide, canonical)), lower, wide.size(),
      interval_text(difference_of(losses(runner.runs(a.narrow_shared)), canonical)));
  return claim;
}

Claim tied(ArmRunner& runner, const Arms& a) {
  Claim claim{.id = "003.6, trained",
              .statement = "Tied heads beside free ones, and beside one head of the same size.",
              .original_words =
                  "\"... which is a less expressive model than that of n features, and therefore usually has "
                  "a larger loss function.\"",
              .original_statement = OriginalStatement::kRight,
              .tolerance = "the 95 % interval of tied minus free lies above 0",
              .trained = true};
  claim.tables.push_back(
      arm_table(runner, {a.canonical, a.tied, a.one_small}, "free, tied, and one head of that size"));
  const Interval cost = difference_of(losses(runner.runs(a.tied)), losses(runner.runs(a.canonical)));
  const Interval same = difference_of(losses(runner.runs(a.tied)), losses(runner.runs(a.one_small)));
  claim.measured = fmt::format("loss of tied minus free {}; of tied minus one head of d/h {}",
                               interval_text(cost), interval_text(same));
  claim.verdict = above(cost, 0);
  return claim;
}

}  // namespace

std::span<const TrainedCheck> trained() {
  static constexpr TrainedCheck kChecks[] = {
      {"003.2, trained",
       [](const ArmRunner& r) {
         const Arms a = make(r);
         return std::vector{a.canonical, a.tied};
       },
       [](ArmRunner& r) { return distances(r, make(r)); }},
      {"003.3, trained",
       [](const ArmRunner& r) {
         const Arms a = make(r);
         return std::vector{a.canonical, a.narrow_shared, a.sliced, a.wide};
       },
       [](ArmRunner& r) { return wide_is_better(r, make(r)); }, true},
      {"003.4",
       [](const ArmRunner& r) {
         const Arms a = make(r);
         return std::vector{a.canonical, a.small_embeddings};
       },
       [](ArmRunner& r) {
         const Arms a = make(r);
         return relations(r, a.canonical, a.small_embeddings);
       }},
      {"003.5", [](const ArmRunner&) { return std::vector<Arm>(); },
       [](ArmRunner& r) {
         return averaging_inhibits(r.seeds()[0], r.size() == StudySize::kQuick ? 1000 : 4000);
       }},
      {"003.6, trained",
       [](const ArmRunner& r) {
         const Arms a = make(r);
         return std::vector{a.canonical, a.tied, a.one_small};
       },
       [](ArmRunner& r) { return tied(r, make(r)); }},
  };
  return kChecks;
}

}  // namespace mh::unique_heads

// 001.4: Deil's question, trained.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"
#include "multihead/models/encoder_decoder.h"

namespace mh::diversity {
namespace {

/// Heads of d / h numbers that read columns drawn for each attention and each seed.
Arm cut(const ArmRunner& runner, const char* name, int heads,
        std::function<HeadColumns(uint64_t draw)> columns) {
  Arm arm = with_heads(runner.base(name), heads);
  HeadGeometry& g = arm.model.geometry;
  g.d_key = g.d_value = runner.settings().model.d_model / runner.settings().model.encoder_heads;
  arm.columns = std::move(columns);
  return arm;
}

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

double evenness(EncoderDecoder& model, int heads) {
  double sum = 0;
  int count = 0;
  model.visit([&](const std::string& name, Parameter& p) {
    if (name.find("attention.w_q") == std::string::npos && name.find("attention.w_k") == std::string::npos &&
        name.find("attention.w_v") == std::string::npos)
      return;
    const int64_t width = p.value.cols() / heads;
    for (int h = 0; h < heads; ++h) {
      double squares = 0, fourth = 0;
      for (int64_t r = 0; r < p.value.rows(); ++r) {
        double row = 0;
        for (int64_t c = 0; c < width; ++c) {
          const auto w = static_cast<double>(p.value(r, h * width + c));
          row += w * w;
        }
        squares += row, fourth += row * row;
      }
      sum += squares * squares / (static_cast<double>(p.value.rows()) * fourth);
      ++count;
    }
  });
  return sum / count;
}

Claim segments(ArmRunner& runner) {
  const int d = runner.settings().model.d_model, h = runner.settings().model.encoder_heads, size = d / h;
  enum : size_t { kContiguous, kPermuted, kRandom, kOverlapping, kRandomDouble, kFive };
  std::vector<TwoStarts> cuts;
  for (Arm& arm : std::vector<Arm>{
           cut(runner, "contiguous slices", h, [=](uint64_t) { return slice_columns(h, d); }),
           cut(runner, "permuted slices", h, [=](uint64_t draw) { return permuted_slices(h, d, draw); }),
           cut(runner, "random segments", h, [=](uint64_t draw) { return random_columns(h, size, d, draw); }),
           cut(runner, "overlapping segments, twice the length", h,
               [=](uint64_t) { return spread_segments(h, 2 * size, d); }),
           cut(runner, "random segments, twice the length", h,
               [=](uint64_t draw) { return random_columns(h, 2 * size, d, draw); }),
           cut(runner, "5 random segments, h not dividing d", h + 1,
               [=](uint64_t draw) { return random_columns(h + 1, size, d, draw); })})
    cuts.push_back(two_starts(std::move(arm)));
  Arm canonical = canonical_arm(runner);
  const Arm largest =
      canonical;  // a canonical head has all rows: no cut has more parameters, but for five heads
  for (TwoStarts& one : cuts) {
    for (Arm* arm : {&one.equal, &one.usual}) *arm = as_large_as(*arm, largest);
  }
  std::vector<Arm*> all = both(cuts);
  all.push_back(&canonical);
  runner.tune(all);

  Claim claim{.id = "001.4, trained",
              .statement =
                  "Deil's question: are the cuts ideal, and would random, overlapping segments find more? "
                  "Six ways to cut, "
                  "with as many parameters as canonical heads (by d_ff), from starts of equal variance. "
                  "Random cuts are drawn for each attention and each seed. (000.7 asks the first clause of "
                  "models with twice the parameters, nearly all of them in d_ff.)",
              .remark =
                  "Random segments leave some columns that no head of an attention reads (last table); "
                  "contiguous ones leave none. So (d) does not compare the choice of columns alone.",
              .original_words =
                  "Deil: \"Feels like it would give us a higher chance to find interesting relationships.\""};
  claim.tables.push_back(starts_table(runner, canonical, cuts, "equal parameters"));
  std::vector<Arm> equal = {canonical};
  for (const TwoStarts& one : cuts) equal.push_back(one.equal);
  const std::vector<Arm> timed = at_equal_time(runner, equal);
  claim.tables.push_back(equal_time_table(runner, equal));
  Table unread{"columns that no head of an attention reads, mean over seeds", {"cut", "%"}, {}};
  for (const TwoStarts& one : cuts)
    unread.rows.push_back({one.equal.name, fmt::format("{:.1f}", unread_percent(runner, one.equal))});
  claim.tables.push_back(std::move(unread));
  claim.plots.push_back(loss_plot(runner, equal, "Ways to cut the embedding, from equal starts"));
  claim.plots.push_back(curve_plot(runner, equal, "Ways to cut the embedding, through training"));

  const int heads = canonical.model.encoder_heads;
  std::vector<double> before, after;
  for (const uint64_t seed : runner.seeds()) {
    EncoderDecoder fresh(canonical.model);
    fresh.initialise(seed);
    before.push_back(100 * evenness(fresh, heads));
    after.push_back(100 * evenness(*runner.trained(canonical, seed), heads));
  }
  const auto minus = [&](size_t a, size_t b) {
    return loss_difference(runner, cuts[a].equal, cuts[b].equal);
  };
  add_predictions(
      claim,
      {{.statement = "Contiguous slices are worse than canonical heads.",
        .quantity = "loss of contiguous minus canonical",
        .by_seed = loss_difference(runner, cuts[kContiguous].equal, canonical),
        .limit = Limit::above(0)},
       {.statement = "The same in equal time.",
        .quantity = "loss of contiguous minus canonical",
        .by_seed = loss_difference(runner, timed[1 + kContiguous], timed[0]),
        .limit = Limit::above(0)},
       {.statement = "The contiguous cut is not special: permuted slices are as good.",
        .quantity = "loss of permuted minus contiguous",
        .by_seed = minus(kPermuted, kContiguous),
        .limit = Limit::within(kMargin)},
       {.statement = "Random segments are better than contiguous ones of the same length.",
        .quantity = "loss of random minus contiguous",
        .by_seed = minus(kRandom, kContiguous),
        .limit = Limit::below(0),
        .original = OriginalSays::kSame},
       {.statement = "Random segments of twice the length are better than overlapping contiguous ones.",
        .quantity = "loss of random minus overlapping",
        .by_seed = minus(kRandomDouble, kOverlapping),
        .limit = Limit::below(0),
        .original = OriginalSays::kSame},
       {.statement = "The reply to Deil, that choosing segments \"is in essence what multihead is doing "
                     "during training\": "
                     "training concentrates each head on fewer of the row's numbers.",
        .quantity = "share of the row that a head reads, after training minus before",
        .by_seed = paired(after, before),
        .limit = Limit::below(0),
        .digits = 1,
        .unit = " points"}});
  claim.clauses.push_back(
      measured_only("How far that goes.",
                    fmt::format("a trained head's matrices spread over {} % of the row; before training over "
                                "{} %; a slice has {:.0f} %",
                                interval_text(interval_of(after), 1), interval_text(interval_of(before), 1),
                                100.0 / heads)));
  claim.clauses.push_back(measured_only(
      "Five random segments, where h does not divide d.",
      fmt::format("loss minus canonical {}",
                  interval_text(interval_of(loss_difference(runner, cuts[kFive].equal, canonical))))));
  return claim;
}

}  // namespace mh::diversity

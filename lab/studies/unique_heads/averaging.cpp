// 003.5, trained: how near one head comes to the bound, from many starts.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>

#include "lab/studies/unique_heads/averaging.h"
#include "lab/studies/unique_heads/claims.h"
#include "multihead/base/thread_pool.h"
#include "multihead/train/adam.h"

namespace mh::unique_heads {
namespace {

using namespace averaging;
using namespace lab;

/// The error on `test` after training from the start that `seed` gives.
double trained_error(int heads, int wide, const Target& y, const Batch& test, uint64_t seed, int updates) {
  constexpr int kSentences = 64;
  Reader reader(heads, wide, seed);
  Adam adam(reader.parameters(), {.beta2 = 0.99});
  Random random(seed, 352);
  Tape tape(Tape::Mode::kRecord);
  for (int update = 1; update <= updates; ++update) {
    const Batch batch = make_batch(y, kSentences, random);
    tape.clear();
    const Var out = reader(tape, batch);
    const Matrix off = differences(out.value(), batch);
    Tensor seed_of(out.rows(), kContent);
    for (int s = 0; s < kSentences; ++s) {
      for (int c = 0; c < kContent; ++c)
        seed_of(int64_t{s} * kWords, c) = static_cast<float>(2 * off(s, c) / kSentences);
    }
    tape.seed(out, seed_of.view());
    tape.backward();
    adam.update(0.04 * (updates - update) / updates);
  }
  return reader.error(test);
}

}  // namespace

Claim averaging::claim_of(std::span<const Reached> draws) {
  // Of the bound, since the test sentences are a sample: its standard error is about 1 %.
  constexpr double kSampling = 0.97;
  constexpr double kFar = 0.01;  // of the variance
  Claim claim{
      .id = "003.5, trained",
      .statement =
          "From however many starts it is trained, one head does not learn P x_a + R x_b, with or without a "
          "feed-forward layer behind it; two heads do.",
      .original_words =
          "\"With a single attention head, averaging inhibits this\" (the paper, quoted in the answer)."};
  const size_t starts = draws.front().one_head.size(), fewer = draws.front().two_heads.size();
  Table table{
      "mean squared error in % of the target's variance, by draw of P and R",
      {"draw", "bound by positions", "bound for any weights", "best of a quarter of the starts",
       fmt::format("best of {} starts", starts), "worst of them", "with feed-forward of 32", "two heads"},
      {}};
  Plot plot{.title = fmt::format("Errors of {} starts of one head", starts),
            .x_label = "error, % of the target's variance",
            .y_label = "",
            .series = {},
            .kind = PlotKind::kStrips,
            .reference = PlotReference::kNothing};
  double least_of_bound = std::numeric_limits<double>::infinity(), most_of_bound = 0,
         least_wide = std::numeric_limits<double>::infinity(), most_wide = 0, smallest = 1, two_most = 0,
         gained = 0;
  for (const Reached& of : draws) {
    const Target& y = of.target;
    const auto [best, worst] = std::ranges::minmax(of.one_head);
    const double bound = least_error(y), quarter = std::ranges::min(std::span(of.one_head).first(fewer)),
                 wide = std::ranges::min(of.feed_forward), two = std::ranges::min(of.two_heads);
    smallest = std::min(smallest, bound / y.variance());
    least_of_bound = std::min(least_of_bound, best / bound),
    most_of_bound = std::max(most_of_bound, best / bound);
    least_wide = std::min(least_wide, wide / bound), most_wide = std::max(most_wide, wide / bound);
    two_most = std::max(two_most, two / y.variance());
    gained = std::max(gained, (quarter - best) / bound);
    table.rows.push_back({std::to_string(of.draw), percent(least_error_by_position(y), y),
                          percent(bound, y, 2), percent(quarter, y, 2), percent(best, y, 2),
                          percent(worst, y, 2), percent(wide, y, 2), percent(two, y, 4)});
    Series series{.name = fmt::format("draw {}: bound {} %", of.draw, percent(bound, y))};
    std::ranges::transform(of.one_head, std::back_inserter(series.y),
                           [&](double error) { return 100 * error / y.variance(); });
    plot.series.push_back(std::move(series));
  }
  const auto add = [&](const char* statement, std::string asked, std::string measured, bool right,
                       OriginalSays original) {
    claim.clauses.push_back(
        of_every_model(statement, std::move(asked), std::move(measured), right, original));
  };
  const std::string in_draws = fmt::format(" in each of {} draws of P and R", draws.size());
  claim.clauses.push_back(algebraic("The bound for one head is more than two heads may miss.",
                                    fmt::format("above {:.0f} % of the variance{}", 100 * kFar, in_draws),
                                    fmt::format("the smallest is {:.1f} %", 100 * smallest), smallest > kFar,
                                    OriginalSays::kSame));
  add("No start leads one head below the bound.",
      fmt::format("the best of {} starts is at least {} times the bound{}", starts, kSampling, in_draws),
      fmt::format("{:.3f} times at least", least_of_bound), least_of_bound >= kSampling, OriginalSays::kSame);
  add("A feed-forward layer behind the one head does not go below the bound either.",
      fmt::format("the best of {} starts is at least {} times the bound{}", fewer, kSampling, in_draws),
      fmt::format("from {:.3f} to {:.3f} times", least_wide, most_wide), least_wide >= kSampling,
      OriginalSays::kNothing);
  add("Two heads learn the task.",
      fmt::format("the best of {} starts misses at most {:.0f} % of the variance{}", fewer, 100 * kFar,
                  in_draws),
      fmt::format("{:.4f} % at most", 100 * two_most), two_most <= kFar, OriginalSays::kSame);
  claim.clauses.push_back(
      measured_only("How near to the bound training comes.",
                    fmt::format("the best of {} starts has between {:.3f} and {:.3f} times the bound", starts,
                                least_of_bound, most_of_bound)));
  claim.clauses.push_back(measured_only(
      "What more starts are worth.",
      fmt::format("the best of {} is lower than the best of the first {} by at most {:.1f} % of the bound",
                  starts, fewer, 100 * gained)));
  claim.tables.push_back(std::move(table));
  claim.plots.push_back(std::move(plot));
  return claim;
}

Claim averaging_inhibits(std::span<const uint64_t> draws, int starts, int updates) {
  constexpr int kTest = 1 << 15;
  // The same starts for all draws; a quarter of them for the other two layers.
  const int fewer = std::max(1, starts / 4), of_draw = starts + 2 * fewer;
  std::vector<Reached> reached;
  std::vector<Batch> tests;
  for (const uint64_t draw : draws) {
    reached.push_back({.draw = draw,
                       .target = draw_target(draw),
                       .one_head = std::vector<double>(static_cast<size_t>(starts)),
                       .feed_forward = std::vector<double>(static_cast<size_t>(fewer)),
                       .two_heads = std::vector<double>(static_cast<size_t>(fewer))});
    Random random(draw, 354);
    tests.push_back(make_batch(reached.back().target, kTest, random));
  }
  parallel_for(static_cast<int64_t>(draws.size()) * of_draw, [&](int64_t i) {
    const auto draw = static_cast<size_t>(i / of_draw);
    const int job = static_cast<int>(i % of_draw), start = job < starts ? job : (job - starts) % fewer;
    const int heads = job >= starts + fewer ? 2 : 1, wide = heads == 1 && job >= starts ? 32 : 0;
    Reached& of = reached[draw];
    std::vector<double>& errors = heads == 2 ? of.two_heads : wide > 0 ? of.feed_forward : of.one_head;
    errors[static_cast<size_t>(start)] =
        trained_error(heads, wide, of.target, tests[draw], static_cast<uint64_t>(start) + 1, updates);
  });
  return claim_of(reached);
}

}  // namespace mh::unique_heads

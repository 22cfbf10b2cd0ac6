// 001.4: Deil's question, trained.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"
#include "multihead/models/encoder_decoder.h"

namespace mh::diversity {
namespace {

Arm cut(const ArmRunner& runner, const char* name, HeadColumns columns) {
  Arm arm = runner.base(name);
  const auto heads = static_cast<int>(columns.size());
  arm = with_heads(arm, heads);
  HeadGeometry& g = arm.model.geometry;
  g.d_key = g.d_value = runner.settings().model.d_model / runner.settings().model.encoder_heads;
  g.input = HeadInput::of_columns(std::move(columns));
  return arm;
}

/// How evenly a head's matrices read the row: (sum of squared row norms)^2 / (d * sum of their squares), 1
/// when all rows weigh the same, k / d when only k of d do.
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
        for (int64_t c = 0; c < width; ++c)
          row +=
              static_cast<double>(p.value(r, h * width + c)) * static_cast<double>(p.value(r, h * width + c));
        squares += row, fourth += row * row;
      }
      sum += squares * squares / (static_cast<double>(p.value.rows()) * fourth);
      ++count;
    }
  });
  return sum / count;
}

}  // namespace

std::vector<Arm> segment_arms(const ArmRunner& runner) {
  const int d = runner.settings().model.d_model, h = runner.settings().model.encoder_heads;
  const int size = d / h, odd = h + 1;
  std::vector<Arm> cuts = {
      canonical_arm(runner),
      cut(runner, "contiguous slices", slice_columns(h, d)),
      cut(runner, "permuted slices", permuted_slices(h, d, 1)),
      cut(runner, "overlapping segments", spread_segments(h, 2 * size, d)),
      cut(runner, "random segments", random_columns(h, 2 * size, d, 1)),
      cut(runner, "5 random segments, h not dividing d", random_columns(odd, size, d, 2))};
  int64_t most = 0;
  for (const Arm& arm : cuts) most = std::max(most, parameters_of(arm.model));
  for (Arm& arm : cuts) arm.model = with_parameters(arm.model, most);
  cuts[0].name = "canonical";
  return cuts;
}

Claim segments(ArmRunner& runner) {
  std::vector<Arm> cuts = segment_arms(runner);
  runner.tune(cuts);
  Claim claim{
      .id = "001.4, trained",
      .statement =
          "Deil's question: are the cuts ideal, and would random, overlapping segments find more? Six ways "
          "to cut at equal parameters (by d_ff), and at equal time; except in the quick size each arm has "
          "the learning rate that was best for it on validation.",
      .original = "Deil: \"Feels like it would give us a higher chance to find interesting relationships.\"",
      .tolerance = "the 95 % interval of contiguous minus canonical lies above 0",
      .trained = true};
  claim.tables.push_back(arm_table(runner, cuts, "equal parameters"));
  claim.tables.push_back(equal_time_table(runner, cuts, "equal time"));
  claim.plots.push_back(loss_plot(runner, cuts, "Ways to cut the embedding"));
  claim.plots.push_back(curve_plot(runner, cuts, "Ways to cut the embedding, through training"));
  EncoderDecoder fresh(cuts[0].model);
  fresh.initialise(runner.seeds()[0]);
  const int heads = cuts[0].model.encoder_heads;
  const double before = evenness(fresh, heads),
               after = evenness(*runner.trained(cuts[0], runner.seeds()[0]), heads);
  const auto minus = [&](size_t i, size_t j) {
    return difference_of(losses(runner.runs(cuts[i])), losses(runner.runs(cuts[j])));
  };
  claim.measured = fmt::format(
      "loss of contiguous slices minus canonical {}, permuted minus contiguous {}, random minus contiguous "
      "{}. \"In essence what multi-head does in training\": trained canonical heads spread over {:.0f} % of "
      "the row (a slice: {:.0f} %; at the start {:.0f} %)",
      shown(minus(1, 0)), shown(minus(2, 1)), shown(minus(4, 1)), 100 * after, 100.0 / heads, 100 * before);
  claim.verdict = above(minus(1, 0), 0);
  return claim;
}

}  // namespace mh::diversity

// 001.5: is the concatenation of heads an ensemble?
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "lab/studies/comparison.h"
#include "lab/studies/diversity/claims.h"
#include "multihead/models/encoder_decoder.h"

namespace mh::diversity {
namespace {

constexpr int kMembers = 4;

Arm member(const ArmRunner& runner, uint64_t number) {
  Arm arm = with_heads(runner.base(fmt::format("single head, d/2, member {}", number)), 1);
  arm.model.d_model = runner.settings().model.d_model / 2;
  arm.model.encoder_ff = arm.model.decoder_ff = runner.settings().model.encoder_ff / 2;
  arm.member = number;
  return arm;
}

}  // namespace

Claim ensemble(ArmRunner& runner) {
  Arm canonical = canonical_arm(runner), first = member(runner, 1);
  runner.tune({&canonical, &first});
  std::vector<Arm> members;
  for (uint64_t number = 1; number <= kMembers; ++number) {
    members.push_back(member(runner, number));
    members.back().learning_rate = first.learning_rate;
  }
  runner.prepare(members);
  Claim claim{
      .id = "001.5",
      .statement =
          "Four concatenated heads beside the average of four single-head models of half the width, which "
          "have the same parameters together, embeddings aside. The models share the rate that suits one of "
          "them best.",
      .original_words =
          "\"One can argue that running through the scaled dot-product attention multiple times in "
          "parallel and concatenating is a form of ensembling.\"",
      .original_remark =
          "An ensemble averages predictions; W^O mixes what the heads found, layer by layer, and all are "
          "trained together. (b) does not decide it: its four models are half as wide, and what narrowness "
          "costs was not measured apart from averaging."};
  std::vector<double> together, alone;
  for (const uint64_t seed : runner.seeds()) {
    std::vector<std::unique_ptr<EncoderDecoder>> models;
    std::vector<EncoderDecoder*> all;
    double sum = 0;
    for (const Arm& one : members) {
      models.push_back(runner.trained(one, seed));
      all.push_back(models.back().get());
      sum += runner.test_loss(*all.back());
    }
    alone.push_back(sum / kMembers);
    together.push_back(runner.ensemble_loss(all));
  }
  const std::vector<double> whole = losses(runner.runs(canonical));
  claim.tables.push_back(
      {"test loss a token",
       {"model", "rate", "parameters", "loss"},
       {{canonical.name, runner.rate_of(canonical), std::to_string(parameters_of(canonical.model)),
         interval_text(interval_of(whole))},
        {"a single-head model of d/2", runner.rate_of(first), std::to_string(parameters_of(first.model)),
         interval_text(interval_of(alone))},
        {"mean of 4 such", "", std::to_string(kMembers * parameters_of(first.model)),
         interval_text(interval_of(together))}}});
  claim.plots.push_back({.title = "Four heads, or four models",
                         .x_label = "test loss a token: seeds, mean, 95 % interval",
                         .y_label = "test loss a token, mean over seeds",
                         .series = {{.name = canonical.name, .y = whole},
                                    {.name = "mean of 4 single-head models", .y = together},
                                    {.name = "one of them", .y = alone}},
                         .kind = PlotKind::kStrips});
  add_predictions(claim, {{.statement = "The average of four single-head models is better than one of them.",
                           .quantity = "loss of the ensemble minus the mean of its members",
                           .by_seed = paired(together, alone),
                           .limit = Limit::below(0)},
                          {.statement = "The average of four models of half the width is as good as four "
                                        "concatenated heads.",
                           .quantity = "loss of the ensemble minus canonical",
                           .by_seed = paired(together, whole),
                           .limit = Limit::within(kMargin)}});
  return claim;
}

}  // namespace mh::diversity

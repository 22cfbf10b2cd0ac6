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

std::vector<Arm> members_of(const ArmRunner& runner) {
  std::vector<Arm> arms;
  for (uint64_t member = 1; member <= kMembers; ++member) {
    Arm arm = with_heads(runner.base(fmt::format("single head, d/2, member {}", member)), 1);
    arm.model.d_model = runner.settings().model.d_model / 2;
    arm.model.encoder_ff = arm.model.decoder_ff = runner.settings().model.encoder_ff / 2;
    arm.member = member;
    arms.push_back(std::move(arm));
  }
  return arms;
}

}  // namespace

std::vector<Arm> ensemble_arms(const ArmRunner& runner) {
  std::vector<Arm> arms = members_of(runner);
  arms.push_back(canonical_arm(runner));
  return arms;
}

Claim ensemble(ArmRunner& runner) {
  const std::vector<Arm> members = members_of(runner);
  const Arm canonical = canonical_arm(runner);
  Claim claim{.id = "001.5",
              .statement =
                  "\"Concatenating heads is a form of ensembling\": against the average of 4 single-head "
                  "models with the same parameters together, embeddings aside.",
              .original =
                  "\"One can argue that running through the scaled dot-product attention multiple times in "
                  "parallel and concatenating is a form of ensembling.\"",
              .said = Said::kHalfRight,
              .trained = true};
  std::vector<double> together, alone;
  for (const uint64_t seed : runner.seeds()) {
    std::vector<std::unique_ptr<EncoderDecoder>> models;
    std::vector<EncoderDecoder*> all;
    for (const Arm& member : members) {
      models.push_back(runner.trained(member, seed));
      all.push_back(models.back().get());
      alone.push_back(runner.test_loss(*all.back()));
    }
    together.push_back(runner.ensemble_loss(all));
  }
  const auto& whole = losses(runner.runs(canonical));
  claim.tables.push_back(
      {"test loss a token",
       {"model", "parameters", "loss"},
       {{"canonical, 4 heads", std::to_string(parameters_of(canonical.model)), shown(interval_of(whole))},
        {"a single-head model of d/2", std::to_string(parameters_of(members[0].model)),
         shown(interval_of(alone))},
        {"mean of 4 such", std::to_string(kMembers * parameters_of(members[0].model)),
         shown(interval_of(together))}}});
  const Interval difference = difference_of(together, whole);
  claim.measured = fmt::format("ensemble minus canonical {}; ensemble minus its members {:.3f}",
                               shown(difference), interval_of(together).mean - interval_of(alone).mean);
  return claim;
}

}  // namespace mh::diversity

// A check that cannot fail is worthless: each algebraic claim passes as it is, and fails with its deliberate
// mistake.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "lab/studies/diversity/claims.h"
#include "lab/studies/one_product/claims.h"
#include "lab/studies/split_or_project/claims.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "lab/studies/unique_heads/claims.h"

namespace mh {
namespace {

std::vector<AlgebraCheck> all_checks() {
  std::vector<AlgebraCheck> all;
  for (const auto& checks :
       {split_or_project::algebra(), diversity::algebra(), two_matrices_or_one::algebra(),
        unique_heads::algebra(), one_product::algebra()}) {
    all.insert(all.end(), checks.begin(), checks.end());
  }
  return all;
}

class Algebra : public testing::TestWithParam<AlgebraCheck> {};

TEST_P(Algebra, Passes) {
  for (const uint64_t seed : {1, 5, 23}) {
    const Claim claim = GetParam().run({.seed = seed});
    EXPECT_EQ(claim.verdict, Verdict::kPass) << "seed " << seed << ": " << claim.measured;
    EXPECT_EQ(claim.id, GetParam().id);
    EXPECT_FALSE(claim.measured.empty());
    EXPECT_FALSE(claim.tolerance.empty());
  }
}

TEST_P(Algebra, FailsWithItsMistake) {
  const Claim claim = GetParam().run({.seed = 3, .mistaken = true});
  EXPECT_EQ(claim.verdict, Verdict::kFail) << claim.measured;
}

std::string name_of(const testing::TestParamInfo<AlgebraCheck>& info) {
  std::string name = "c" + std::string(info.param.id);
  name[name.find('.')] = '_';
  return name;
}

// A conclusion that asked for a claim that is none would end the program here.
TEST(Conclusions, AskForClaimsOfTheirStudy) {
  for (const Study& study : studies()) {
    std::set<std::string> endings;
    for (const Verdict verdict : {Verdict::kPass, Verdict::kFail, Verdict::kUndecided}) {
      std::vector<Claim> claims;
      for (const AlgebraCheck& check : study.algebra)
        claims.push_back({.id = std::string(check.id), .verdict = verdict});
      for (const TrainedCheck& check : study.trained)
        claims.push_back({.id = std::string(check.id), .verdict = verdict});
      endings.insert(study.conclusion(claims));
    }
    EXPECT_FALSE(endings.contains("")) << study.name;
    EXPECT_GE(endings.size(), study.name == "table3" ? 1u : 2u) << study.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Claims, Algebra, testing::ValuesIn(all_checks()), name_of);

}  // namespace
}  // namespace mh

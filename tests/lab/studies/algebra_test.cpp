// A check that cannot fail is worthless: each algebraic claim passes as it is, and fails with its deliberate
// mistake.
#include <gtest/gtest.h>

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

INSTANTIATE_TEST_SUITE_P(Claims, Algebra, testing::ValuesIn(all_checks()), name_of);

}  // namespace
}  // namespace mh

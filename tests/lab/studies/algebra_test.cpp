// A check that cannot fail is worthless: each clause of an algebraic claim passes as it is, and fails with its
// deliberate mistake.
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

TEST_P(Algebra, EveryClausePasses) {
  for (const uint64_t seed : {1, 5, 23}) {
    const Claim claim = GetParam().run({.seed = seed});
    EXPECT_EQ(claim.id, GetParam().id);
    EXPECT_FALSE(claim.statement.empty());
    bool decided = false;
    for (const Clause& clause : claim.clauses) {
      EXPECT_FALSE(clause.statement.empty());
      EXPECT_FALSE(clause.measured.empty()) << clause.statement;
      EXPECT_EQ(clause.kind, Evidence::kAlgebra) << clause.statement;
      if (clause.verdict == Verdict::kMeasured) continue;
      decided = true;
      EXPECT_FALSE(clause.asked.empty()) << clause.statement;
      EXPECT_EQ(clause.verdict, Verdict::kPass)
          << "seed " << seed << ": " << clause.statement << ": " << clause.measured;
    }
    EXPECT_TRUE(decided);
  }
}

TEST_P(Algebra, EveryClauseFailsWithItsMistake) {
  constexpr uint64_t kSeed = 3;
  const std::vector<Clause> clauses = GetParam().run({.seed = kSeed}).clauses;
  for (size_t i = 0; i < clauses.size(); ++i) {
    if (clauses[i].verdict == Verdict::kMeasured) continue;
    const int mistake = static_cast<int>(i) + 1;
    const Claim claim = GetParam().run({.seed = kSeed, .mistake = mistake});
    ASSERT_EQ(claim.clauses.size(), clauses.size());
    EXPECT_EQ(claim.clauses[i].verdict, Verdict::kFail)
        << "mistake " << mistake << ": " << claim.clauses[i].statement << ": " << claim.clauses[i].measured;
  }
}

std::string name_of_check(const testing::TestParamInfo<AlgebraCheck>& info) {
  std::string name = "c" + std::string(info.param.id);
  name[name.find('.')] = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Claims, Algebra, testing::ValuesIn(all_checks()), name_of_check);

}  // namespace
}  // namespace mh

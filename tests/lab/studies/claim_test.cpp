// What follows from the verdicts of a claim's clauses.
#include "lab/studies/claim.h"

#include <gtest/gtest.h>

#include <vector>

#include "multihead/io/config.h"

namespace mh {
namespace {

using enum Verdict;

Clause clause(Verdict verdict, OriginalSays original = OriginalSays::kNothing,
              Evidence kind = Evidence::kAlgebra) {
  return {.statement = "so it is", .verdict = verdict, .kind = kind, .original = original};
}

Claim settled(std::vector<Clause> clauses) {
  Claim claim{.id = "000.1", .clauses = std::move(clauses)};
  settle(claim);
  return claim;
}

TEST(Settle, TheWorstClauseDecidesTheVerdict) {
  const auto verdict = [](const std::vector<Verdict>& verdicts) {
    std::vector<Clause> clauses;
    for (const Verdict v : verdicts) clauses.push_back(clause(v));
    return settled(clauses).verdict;
  };
  EXPECT_EQ(verdict({kPass, kMeasured, kUndecided, kFail}), kFail);
  EXPECT_EQ(verdict({kPass, kMeasured, kUndecided}), kUndecided);
  EXPECT_EQ(verdict({kMeasured, kPass}), kPass);
  EXPECT_EQ(verdict({kMeasured, kMeasured}), kMeasured);
  EXPECT_EQ(verdict({}), kMeasured);
}

TEST(Settle, AClaimIsTrainedWhenAClauseIs) {
  EXPECT_EQ(settled({clause(kPass), clause(kPass)}).kind, Evidence::kAlgebra);
  EXPECT_EQ(settled({clause(kPass), clause(kPass, OriginalSays::kNothing, Evidence::kTrained)}).kind,
            Evidence::kTrained);
  EXPECT_EQ(settled({}).kind, Evidence::kAlgebra);
}

TEST(Settle, TheOriginalIsJudgedByTheClausesThatSpeakOfIt) {
  using enum OriginalSays;
  using enum OriginalStatement;
  struct Case {
    std::vector<Clause> clauses;
    OriginalStatement expected;
  };
  const Case cases[] = {
      {{}, kNotMade},
      {{clause(kPass), clause(kFail)}, kNotMade},
      {{clause(kMeasured, kSame)}, kNotMade},
      {{clause(kPass, kSame)}, kRight},
      {{clause(kFail, kOpposite)}, kRight},
      {{clause(kPass, kSame), clause(kFail, kOpposite), clause(kFail)}, kRight},
      {{clause(kPass, kOpposite)}, kWrong},
      {{clause(kFail, kSame)}, kWrong},
      {{clause(kPass, kOpposite), clause(kFail, kSame), clause(kPass)}, kWrong},
      {{clause(kPass, kSame), clause(kFail, kSame)}, kHalfRight},
      {{clause(kPass, kSame), clause(kPass, kOpposite)}, kHalfRight},
      {{clause(kPass, kSame), clause(kFail, kSame), clause(kUndecided, kSame)}, kHalfRight},
      {{clause(kUndecided, kSame)}, kOpen},
      {{clause(kUndecided, kOpposite), clause(kPass, kSame)}, kOpen},
      {{clause(kUndecided, kSame), clause(kPass, kOpposite)}, kOpen},
  };
  int number = 0;
  for (const Case& one : cases) {
    EXPECT_EQ(settled(one.clauses).original_statement, one.expected) << "case " << number;
    ++number;
  }
}

TEST(Settle, ForgetsWhatWasSaidBefore) {
  Claim claim{.id = "000.1",
              .clauses = {clause(kMeasured)},
              .verdict = kFail,
              .kind = Evidence::kTrained,
              .original_statement = OriginalStatement::kWrong};
  settle(claim);
  EXPECT_EQ(claim.verdict, kMeasured);
  EXPECT_EQ(claim.kind, Evidence::kAlgebra);
  EXPECT_EQ(claim.original_statement, OriginalStatement::kNotMade);
}

TEST(Clauses, OfAlgebraPassOrFail) {
  const Clause right = algebraic("a", "b", "c", true, OriginalSays::kOpposite);
  EXPECT_EQ(right.verdict, kPass);
  EXPECT_EQ(right.kind, Evidence::kAlgebra);
  EXPECT_EQ(right.original, OriginalSays::kOpposite);
  EXPECT_EQ(right.statement + right.asked + right.measured, "abc");
  EXPECT_EQ(algebraic("a", "b", "c", false).verdict, kFail);
  EXPECT_EQ(algebraic("a", "b", "c", false).original, OriginalSays::kNothing);
}

TEST(Clauses, WithoutAPredictionAskNothing) {
  const Clause clause = measured_only("a", "1.5");
  EXPECT_EQ(clause.verdict, kMeasured);
  EXPECT_EQ(clause.kind, Evidence::kTrained);
  EXPECT_EQ(clause.asked, "");
  EXPECT_EQ(measured_only("a", "1.5", Evidence::kAlgebra).kind, Evidence::kAlgebra);
}

TEST(Clauses, HaveLetters) {
  EXPECT_EQ(clause_letter(0), "(a)");
  EXPECT_EQ(clause_letter(2), "(c)");
}

TEST(StudyReport, CountsClausesAndNotClaims) {
  StudyReport report;
  report.claims = {settled({clause(kPass), clause(kPass), clause(kFail)}),
                   settled({clause(kUndecided), clause(kPass)})};
  EXPECT_EQ(report.count(kPass), 3);
  EXPECT_EQ(report.count(kFail), 1);
  EXPECT_EQ(report.count(kUndecided), 1);
  EXPECT_EQ(report.count(kMeasured), 0);
}

TEST(StudyReport, IsKeptAsJsonWithVerdictAndKindOfEachClause) {
  StudyReport report;
  report.name = "a-study";
  report.claims = {settled({clause(kUndecided, OriginalSays::kSame, Evidence::kTrained)})};
  const std::string text = to_json(report);
  for (const char* field : {R"("verdict": "UNDECIDED")", R"("kind": "trained")", R"("original": "same")",
                            R"("original_statement": "open")"})
    EXPECT_NE(text.find(field), std::string::npos) << field << "\n" << text;
  StudyReport kept;
  from_json(kept, text, "report");
  EXPECT_EQ(to_json(kept), text);
  EXPECT_EQ(kept.claims[0].clauses[0].verdict, kUndecided);
}

}  // namespace
}  // namespace mh

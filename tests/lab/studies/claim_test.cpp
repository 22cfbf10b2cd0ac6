// What follows from the verdicts of a claim's clauses.
#include "lab/studies/claim.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/studies/claim_words.h"
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
  EXPECT_EQ(verdict({kWithdrawn, kPass}), kPass);
  EXPECT_EQ(verdict({kWithdrawn, kMeasured}), kMeasured);
  EXPECT_EQ(verdict({kWithdrawn, kWithdrawn}), kWithdrawn);
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
      {{clause(kWithdrawn, kSame)}, kNotMade},
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

TEST(Clauses, GetTheirFiguresInTheirOrder) {
  Claim claim{
      .clauses = {{.statement = "a", .asked = "b"}, {.statement = "c", .asked = "d"}, {.statement = "e"}}};
  decide(claim, true, "1");
  decide(claim, false, "2");
  measure(claim, "3");
  const Verdict verdicts[] = {kPass, kFail, kMeasured};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(claim.clauses[i].verdict, verdicts[i]) << i;
    EXPECT_EQ(claim.clauses[i].measured, std::to_string(i + 1));
  }
}

TEST(ClaimWords, AreThoseOfTheFileWithTheirValues) {
  const Claim claim = claim_without_figures("000.6", {{"heads", "five"}});
  EXPECT_EQ(claim.id, "000.6");
  ASSERT_EQ(claim.clauses.size(), 3u);
  EXPECT_EQ(claim.clauses[0].statement, "One head is worse than five.");
  EXPECT_EQ(claim.clauses[0].asked, "loss of one head minus loss of five");
  EXPECT_EQ(claim.clauses[0].kind, Evidence::kTrained);
  EXPECT_EQ(claim.clauses[0].original, OriginalSays::kSame);
  EXPECT_EQ(claim.clauses[0].verdict, kMeasured);
  EXPECT_EQ(claim.clauses[0].measured, "");
  EXPECT_TRUE(claim.tables.at(0).rows.empty());
  EXPECT_EQ(claim.plots.at(0).title, "Heads at equal cost");
}

TEST(ClaimWords, TakeAnyTextAsValue) {
  const std::string folder = "my \"best\" {d} \\ model\n";
  EXPECT_EQ(claim_without_figures("002.6, loaded", {{"checkpoint", folder}, {"d", "64"}}).statement,
            "The same of a checkpoint that is loaded: " + folder + ".");
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

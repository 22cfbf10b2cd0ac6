// The answer of a study: a sentence for each clause that decides, by its verdict.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/studies/study.h"

namespace mh {
namespace {

std::vector<Claim> claims_of(Verdict first, Verdict second) {
  return {{.id = "000.1", .clauses = {{.verdict = first}, {.verdict = second}}}};
}

TEST(Answer, SaysWhatTheVerdictOfTheClauseSays) {
  const Sentence sentences[] = {
      {.claim = "000.1", .clause = 1, .pass = "Yes.", .fail = "No.", .undecided = "Perhaps."}};
  const auto answer = [&](Verdict verdict) {
    return answer_of(sentences, claims_of(Verdict::kPass, verdict));
  };
  EXPECT_EQ(answer(Verdict::kPass), "Yes.");
  EXPECT_EQ(answer(Verdict::kFail), "No.");
  EXPECT_EQ(answer(Verdict::kUndecided), "Perhaps.");
  EXPECT_EQ(answer(Verdict::kMeasured), "Perhaps.") << "nothing was predicted, so nothing is decided";
}

TEST(Answer, LooksAtTheFirstClauseUnlessAnotherIsNamed) {
  const Sentence sentences[] = {{.claim = "000.1", .pass = "Yes.", .fail = "No."}};
  EXPECT_EQ(answer_of(sentences, claims_of(Verdict::kPass, Verdict::kFail)), "Yes.");
}

TEST(Answer, PutsSentencesInTheirOrder) {
  const Sentence sentences[] = {{.claim = "000.1", .clause = 1, .pass = "One.", .fail = "Not one."},
                                {.claim = "000.1", .clause = 0, .pass = "Two.", .fail = "Not two."}};
  EXPECT_EQ(answer_of(sentences, claims_of(Verdict::kFail, Verdict::kPass)), "One. Not two.");
}

TEST(Answer, SaysNothingWhereNoSentenceIsGiven) {
  const Sentence open[] = {{.claim = "000.1", .pass = "Yes.", .fail = "No."},
                           {.claim = "000.1", .clause = 1, .pass = "Also.", .fail = "Not that."}};
  EXPECT_EQ(answer_of(open, claims_of(Verdict::kUndecided, Verdict::kPass)), "Also.")
      << "no sentence, and no space in its place";
  const Sentence silent[] = {{.claim = "000.1", .pass = ""}};
  for (const Verdict verdict : {Verdict::kPass, Verdict::kUndecided, Verdict::kMeasured})
    EXPECT_EQ(answer_of(silent, claims_of(verdict, Verdict::kPass)), "");
  EXPECT_EQ(answer_of({}, {}), "");
}

TEST(Answer, OfAFailedFormulaSaysThatTheProgramIsBroken) {
  const Sentence sentences[] = {{.claim = "000.1", .pass = "The formula holds."}};
  const std::string answer = answer_of(sentences, claims_of(Verdict::kFail, Verdict::kPass));
  EXPECT_NE(answer, "");
  EXPECT_EQ(answer.find("The formula holds."), std::string::npos);
}

}  // namespace
}  // namespace mh

// A study as a whole: which claims are checked, in which order, and what is said of their verdicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "lab/studies/claim_words.h"
#include "lab/studies/report.h"
#include "lab/studies/study.h"
#include "lab/studies/unique_heads/claims.h"
#include "multihead/base/error.h"
#include "tests/lab/studies/tiny_runner.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A study of two formulas and two claims about models, of which one is for real text only. Nothing is trained.

int formulas = 0, models = 0;        // how often each kind was run
Verdict of_models = Verdict::kPass;  // what the claim about models finds

Claim holds(const AlgebraCase& a) {
  ++formulas;
  Claim claim{
      .id = "009.1",
      .statement = "Two is even.",
      .original_words = "\"Two is odd.\"",
      .clauses = {{.statement = "Two divides two.", .asked = "rest 0", .original = OriginalSays::kOpposite}}};
  decide(claim, a.mistake != 1, "rest 0");
  claim.verdict = Verdict::kFail;  // settle() decides
  return claim;
}

Claim also_holds(const AlgebraCase&) {
  ++formulas;
  Claim claim{.id = "009.2",
              .statement = "Three is odd.",
              .clauses = {{.statement = "Two does not divide three.", .asked = "rest 1"},
                          {.statement = "Its half."}}};
  decide(claim, true, "rest 1");
  measure(claim, "1.5");
  return claim;
}

Claim looks_at_models(ArmRunner& runner) {
  ++models;
  Claim claim{.id = "009.1, trained", .statement = "Models know it."};
  claim.clauses.push_back({.statement = "They count to two.",
                           .asked = "2",
                           .measured = std::to_string(runner.seeds().size()) + " seeds",
                           .verdict = of_models,
                           .kind = Evidence::kTrained});
  claim.plots.push_back({.title = "a plot"});
  return claim;
}

Claim of_real_text(ArmRunner&) {
  ADD_FAILURE() << "this size has no real text";
  return {.id = "009.3"};
}

constexpr AlgebraCheck kAlgebra[] = {{"009.1", holds}, {"009.2", also_holds}};
constexpr TrainedCheck kTrained[] = {{"009.1, trained", looks_at_models}, {"009.3", of_real_text, true}};
const std::vector<Sentence> kAnswer = {
    {"009.2", 0, "Three is odd."},
    {"009.1, trained", 0, "Models count to two.", "Models do not.", "Models may."},
    {"009.1", 0, "Two is even."}};

const std::vector<Sentence> kAlone = {{"009.3", 0, "Text says so."}, {"009.1", 0, "Two is an even number."}};

class RunStudy : public testing::Test {
 protected:
  RunStudy() { formulas = models = 0, of_models = Verdict::kPass; }
  static std::vector<std::string> ids(const StudyReport& report) {
    std::vector<std::string> ids;
    for (const Claim& claim : report.claims) ids.push_back(claim.id);
    return ids;
  }

  test::TinyRunner tiny_;
  ArmRunner& runner_ = *tiny_;
  const Study study_{"numbers", "Is two even?", kAnswer, kAlone, "009.1, trained", kAlgebra, kTrained};
};

TEST_F(RunStudy, ChecksEveryClaimInTheOrderOfTheirIds) {
  const StudyReport report = run_study(study_, runner_);
  EXPECT_THAT(ids(report), ElementsAre("009.1", "009.1, trained", "009.2"));
  EXPECT_EQ(formulas, 2);
  EXPECT_EQ(models, 1);
  EXPECT_EQ(report.name, "numbers");
  EXPECT_EQ(report.question, "Is two even?");
  EXPECT_EQ(report.size, "standard");
  EXPECT_EQ(report.picture, "009.1, trained");
  ASSERT_NE(picture_of(report), nullptr);
  EXPECT_EQ(picture_of(report)->title, "a plot");
  EXPECT_FALSE(report.machine.empty());
  EXPECT_EQ(report.answer, "Three is odd. Models count to two. Two is even.")
      << "in the order of the sentences";
  EXPECT_TRUE(tiny_.steps.empty()) << "nothing is trained";
}

TEST_F(RunStudy, SettlesWhatFollowsFromTheClauses) {
  of_models = Verdict::kUndecided;
  const StudyReport report = run_study(study_, runner_);
  EXPECT_EQ(report.claims[0].verdict, Verdict::kPass);
  EXPECT_EQ(report.claims[0].kind, Evidence::kAlgebra);
  EXPECT_EQ(report.claims[0].original_statement, OriginalStatement::kWrong);
  EXPECT_EQ(report.claims[1].verdict, Verdict::kUndecided);
  EXPECT_EQ(report.claims[1].kind, Evidence::kTrained);
  EXPECT_EQ(report.claims[2].original_statement, OriginalStatement::kNotMade);
  EXPECT_EQ(report.count(Verdict::kPass), 2);
  EXPECT_EQ(report.count(Verdict::kMeasured), 1);
  EXPECT_EQ(report.answer, "Three is odd. Models may. Two is even.");
  of_models = Verdict::kFail;
  EXPECT_EQ(run_study(study_, runner_).answer, "Three is odd. Models do not. Two is even.");
}

TEST_F(RunStudy, ChecksOnlyTheClaimsThatAreAskedFor) {
  EXPECT_THAT(ids(run_study(study_, runner_, {"009.2"})), ElementsAre("009.2"));
  EXPECT_EQ(formulas, 1);
  EXPECT_EQ(models, 0);
  const StudyReport both = run_study(study_, runner_, {"009.1"});
  EXPECT_THAT(ids(both), ElementsAre("009.1", "009.1, trained")) << "the formula and the models of it";
  EXPECT_EQ(both.answer, "Two is an even number.") << "what stands alone";
  EXPECT_FALSE(both.whole);
  EXPECT_EQ(both.picture, "009.1, trained");
  EXPECT_FALSE(both.note.empty());
  const StudyReport other = run_study(study_, runner_, {"009.2"});
  EXPECT_EQ(other.answer, "");
  EXPECT_EQ(other.picture, "") << "it has no plot";
  EXPECT_EQ(other.note, "") << "nothing was trained";
  EXPECT_THAT(ids(run_study(study_, runner_, {"009.2", "009.1"})),
              ElementsAre("009.1", "009.1, trained", "009.2"));
}

TEST_F(RunStudy, RefusesAClaimThatTheStudyDoesNotHave) {
  try {
    run_study(study_, runner_, {"009.2", "000.1"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("numbers"), HasSubstr("'000.1'"), HasSubstr("009.1, 009.2, 009.3")));
  }
  EXPECT_EQ(formulas, 0) << "before anything is run";
  EXPECT_THROW(run_study(study_, runner_, {"009.1, trained"}), UsageError) << "a number is asked for";
}

TEST_F(RunStudy, StopsWhenItIsAskedToBeforeTheNextClaim) {
  for (const int last : {0, 1, 2}) {
    SCOPED_TRACE(last);
    formulas = models = 0;
    std::vector<std::string> steps;
    const StudyWatcher watcher{.step = [&](const std::string& line) { steps.push_back(line); },
                               .stop = [=] { return formulas == last; }};
    EXPECT_THROW(run_study(study_, runner_, {}, watcher), Interrupted);
    EXPECT_EQ(formulas, last);
    EXPECT_EQ(models, 0);
    EXPECT_THAT(steps, ElementsAre(HasSubstr("numbers")));
  }
}

TEST_F(RunStudy, SaysWhatItsModelsCost) {
  const StudyReport none = run_study(study_, runner_);
  EXPECT_TRUE(none.whole);
  EXPECT_EQ(none.models, 0);
  EXPECT_EQ(none.training_seconds, 0);
  const auto trains = [](ArmRunner& runner) {
    Claim claim = looks_at_models(runner);
    runner.runs(runner.base("base"), {1, 2});
    runner.runs(runner.base("the same"), {2});
    return claim;
  };
  static constexpr TrainedCheck kTrains[] = {{"009.1, trained", trains}};
  const Study study{"numbers", "Is two even?", {}, kAlone, "009.1, trained", {}, kTrains};
  const StudyReport first = run_study(study, runner_), again = run_study(study, runner_);
  double seconds = 0;
  for (const ArmRun& run : runner_.runs(runner_.base("base"), {1, 2})) seconds += run.seconds;
  for (const StudyReport& report : {first, again}) {
    EXPECT_EQ(report.models, 2);
    EXPECT_DOUBLE_EQ(report.training_seconds, seconds) << "also when they were there before";
    EXPECT_GE(report.seconds, 0);
  }
}

TEST_F(RunStudy, KeepsItsRunsUnderItsName) {
  run_study(study_, runner_);
  runner_.runs(runner_.base("base"), {1});
  EXPECT_TRUE(std::filesystem::exists(runner_.options().runs / "numbers.jsonl"));
}

/// What a study with such claims would have kept: as many clauses as the answer asks for.
StudyReport report_with_answer(const Study& study, Verdict verdict) {
  StudyReport report;
  report.name = study.name;
  report.whole = true;
  report.answer = "what an earlier version said";
  for (const Sentence& sentence : study.answer) {
    auto claim = std::find_if(report.claims.begin(), report.claims.end(),
                              [&](const Claim& c) { return c.id == sentence.claim; });
    if (claim == report.claims.end()) {
      report.claims.push_back({.id = std::string(sentence.claim)});
      claim = report.claims.end() - 1;
    }
    claim->clauses.resize(std::max(claim->clauses.size(), sentence.clause + 1),
                          {.measured = "1", .verdict = verdict});
  }
  return report;
}

TEST(RedrawnReport, SaysWhatTheChangedVerdictSays) {
  for (const Study& study : studies()) {
    SCOPED_TRACE(std::string(study.name));
    const StudyReport passed = report_with_answer(study, Verdict::kPass);
    const std::string before = redrawn(passed).answer;
    for (const Sentence& sentence : study.answer) {
      EXPECT_THAT(before, HasSubstr(std::string(sentence.pass)));
      for (const Verdict verdict : {Verdict::kFail, Verdict::kUndecided}) {
        StudyReport changed = passed;
        for (Claim& claim : changed.claims) {
          if (claim.id == sentence.claim) claim.clauses[sentence.clause].verdict = verdict;
        }
        const StudyReport after = redrawn(changed);
        EXPECT_NE(after.answer, before);
        EXPECT_THAT(after.answer, testing::Not(HasSubstr(std::string(sentence.pass))));
        std::string_view said = verdict == Verdict::kFail ? sentence.fail : sentence.undecided;
        if (verdict == Verdict::kFail && said.empty()) said = "An algebraic check failed on this machine";
        EXPECT_THAT(after.answer, HasSubstr(std::string(said)));
        for (const Claim& claim : after.claims)
          EXPECT_EQ(claim.verdict, claim.id == sentence.claim ? verdict : Verdict::kPass) << claim.id;
      }
    }
  }
}

TEST(RedrawnReport, NeedsTheClaimsAndClausesOfTheAnswer) {
  for (const Study& study : studies()) {
    for (const Sentence& sentence : study.answer) {
      StudyReport without = report_with_answer(study, Verdict::kPass), shorter = without;
      std::erase_if(without.claims, [&](const Claim& claim) { return claim.id == sentence.claim; });
      EXPECT_THROW(redrawn(without), FormatError) << sentence.claim;
      for (Claim& claim : shorter.claims) {
        if (claim.id == sentence.claim) claim.clauses.resize(sentence.clause);
      }
      EXPECT_THROW(redrawn(shorter), FormatError) << sentence.claim;
    }
  }
}

/// The published studies.
class Published : public testing::TestWithParam<size_t> {
 protected:
  const Study& study_ = studies()[GetParam()];
  const TrainedCheck* trained(std::string_view id) const {
    const auto found = std::find_if(study_.trained.begin(), study_.trained.end(),
                                    [&](const TrainedCheck& check) { return check.id == id; });
    return found == study_.trained.end() ? nullptr : &*found;
  }
};

TEST_P(Published, AnswerNamesClaimsAndClausesThatThereAre) {
  std::map<std::string_view, std::vector<Clause>> algebra;
  EXPECT_FALSE(study_.answer.empty());
  for (const Sentence& sentence : study_.answer) {
    SCOPED_TRACE(std::string(sentence.claim) + ": " + std::string(sentence.pass));
    EXPECT_TRUE(sentence.pass.ends_with('.'));
    if (const TrainedCheck* check = trained(sentence.claim)) {
      EXPECT_FALSE(check->paper_only) << "other sizes would have no answer";
      const bool of_any_model = sentence.claim == "002.2" && sentence.clause == 0;  // the rank of a product
      EXPECT_TRUE(of_any_model || sentence.fail.ends_with('.'))
          << "a model that does otherwise is no broken program";
      continue;
    }
    const auto check = std::find_if(study_.algebra.begin(), study_.algebra.end(),
                                    [&](const AlgebraCheck& one) { return one.id == sentence.claim; });
    ASSERT_NE(check, study_.algebra.end());
    if (!algebra.contains(check->id)) algebra[check->id] = check->run({}).clauses;
    ASSERT_LT(sentence.clause, algebra[check->id].size());
    EXPECT_EQ(algebra[check->id][sentence.clause].verdict, Verdict::kPass);
  }
}

TEST_P(Published, SentencesThatStandAloneAreOfClaimsThatThereAre) {
  for (const Sentence& sentence : study_.alone) {
    SCOPED_TRACE(std::string(sentence.claim) + ": " + std::string(sentence.pass));
    EXPECT_TRUE(sentence.pass.ends_with('.'));
    if (sentence.claim == "002.6, loaded") continue;  // there when a checkpoint is given
    EXPECT_NE(trained(sentence.claim), nullptr);
    EXPECT_TRUE(sentence.fail.ends_with('.'));
    EXPECT_TRUE(sentence.undecided.ends_with('.'));
  }
}

TEST(PublishedOnRealText, HasTheClausesOfItsAnswerThoughItHasNoTrees) {
  const test::ScratchFolder data;
  test::write_tiny_text(data.path());
  SizeSettings settings = test::tiny_settings();
  settings.vocabulary = 60;
  test::TinyRunner runner(settings, StudySize::kPaper, data.path());
  const Claim claim = unique_heads::relations(*runner, runner->base("one"), runner->base("other"));
  EXPECT_TRUE(runner.steps.empty());
  for (const Sentence& sentence : find_study("unique-heads").answer) {
    if (sentence.claim != claim.id) continue;
    EXPECT_LT(sentence.clause, claim.clauses.size());
  }
}

TEST_P(Published, PictureIsOfAClaimThatThereIs) {
  const auto of_algebra = [&](const AlgebraCheck& check) { return check.id == study_.picture; };
  if (std::any_of(study_.algebra.begin(), study_.algebra.end(), of_algebra)) return;
  const TrainedCheck* check = trained(study_.picture);
  ASSERT_NE(check, nullptr) << study_.picture;
  EXPECT_FALSE(check->paper_only);
}

TEST_P(Published, ClaimsAreInTheOrderOfTheirIdsAndEachIsThereOnce) {
  std::vector<std::string> ids;
  for (const TrainedCheck& check : study_.trained) ids.emplace_back(check.id);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end(), comes_before));
  std::vector<std::string> formulas_first;
  for (const AlgebraCheck& check : study_.algebra) formulas_first.emplace_back(check.id);
  EXPECT_TRUE(std::is_sorted(formulas_first.begin(), formulas_first.end(), comes_before));
  ids.insert(ids.end(), formulas_first.begin(), formulas_first.end());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
}

std::string name_of_study(const testing::TestParamInfo<size_t>& number) {
  std::string name(studies()[number.param].name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Studies, Published, testing::Range<size_t>(0, studies().size()), name_of_study);

}  // namespace
}  // namespace mh

// What claims about trained models ask and show, with models so small that they have learned nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lab/studies/comparison.h"
#include "lab/studies/equal_start.h"
#include "lab/studies/study.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "tests/lab/studies/tiny_runner.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// The quick size leaves the rates as they are, so few models are trained.
class ClausesOfStudies : public testing::Test {
 protected:
  Claim claim_of(std::string_view study, std::string_view id) {
    for (const TrainedCheck& check : find_study(study).trained) {
      if (check.id == id) return check.run(*tiny_);
    }
    throw UsageError(std::string(id));
  }
  ArmRunner& runner() { return *tiny_; }
  Arm with_start(HeadInitialisation initialisation, Start start = Start::kUsual) {
    Arm arm = runner().base("arm");
    arm.model.geometry.initialisation = initialisation;
    arm.start = start;
    return arm;
  }
  /// "0.123 ± 0.045", of a - b by seed.
  std::string minus(const Arm& a, const Arm& b) {
    return interval_text(paired(losses(runner().runs(a)), losses(runner().runs(b))));
  }
  /// A number of the heads' telemetry, by seed.
  std::vector<double> heads(const Arm& arm, double HeadTelemetry::*number, bool at_the_end = true) {
    return of_runs(runner().runs(arm), [&](const ArmRun& run) {
      return (at_the_end ? run.curve.back() : run.curve.front()).heads.*number;
    });
  }

 private:
  test::TinyRunner tiny_{test::tiny_settings(), StudySize::kQuick};
};

TEST_F(ClausesOfStudies, MoreHeadsOfAFixedSizeAreComparedAtEqualParametersToo) {
  const Claim claim = claim_of("split-or-project", "000.8");
  ASSERT_EQ(claim.clauses.size(), 3u);
  const Clause& clause = claim.clauses[2];
  EXPECT_THAT(clause.statement, HasSubstr("At equal parameters"));
  EXPECT_THAT(clause.asked, HasSubstr("below 0"));
  EXPECT_EQ(clause.original, OriginalSays::kNothing);
  EXPECT_THAT(claim.remark, HasSubstr("(c)"));
  const Table& table = claim.tables.at(1);
  EXPECT_THAT(table.caption, HasSubstr("equal parameters"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[1][0], "16 heads of d_k = 4");
  EXPECT_THAT(clause.measured, StartsWith(table.rows[1][4] + ","));
  const auto parameters = [&](size_t row) { return std::atoll(table.rows[row][2].c_str()); };
  Arm canonical = canonical_arm(runner());
  EXPECT_GT(parameters(0), parameters_of(canonical.model)) << "a larger d_ff";
  ++canonical.model.encoder_ff, ++canonical.model.decoder_ff;
  const int64_t step = parameters_of(canonical.model) - parameters_of(canonical_arm(runner()).model);
  EXPECT_LE(2 * std::abs(parameters(0) - parameters(1)), step);
}

TEST_F(ClausesOfStudies, HowFarHeadsMoveIsAskedByDivergenceAndByLikeness) {
  const Claim claim = claim_of("diversity", "001.1");
  ASSERT_EQ(claim.clauses.size(), 4u);
  const Arm canonical = canonical_arm(runner());
  const auto moved = [&](double HeadTelemetry::*number) {
    return interval_text(paired(heads(canonical, number), heads(canonical, number, false))) + ",";
  };
  EXPECT_THAT(claim.clauses[1].statement, StartsWith("By the divergence of their rows,"));
  EXPECT_THAT(claim.clauses[1].measured, StartsWith(moved(&HeadTelemetry::divergence)));
  EXPECT_THAT(claim.clauses[3].statement, StartsWith("By A_i A_j,"));
  EXPECT_THAT(claim.clauses[3].asked, HasSubstr("below 0")) << "less alike";
  EXPECT_THAT(claim.clauses[3].measured, StartsWith(moved(&HeadTelemetry::positions)));
  EXPECT_THAT(claim.remark, testing::AllOf(HasSubstr("sharper"), HasSubstr("(b)"), HasSubstr("(d)")));
}

// What rested on cosines in a basis of each head's own, or on numbers of another basis of the embedding.
TEST_F(ClausesOfStudies, WhatABasisChangesIsWithdrawnByName) {
  const std::vector<std::pair<const char*, std::vector<size_t>>> withdrawn = {
      {"001.1", {0, 2}}, {"001.3", {0, 4}}, {"001.4, trained", {5, 6}}};
  for (const auto& [id, clauses] : withdrawn) {
    const Claim claim = claim_of("diversity", id);
    for (size_t i = 0; i < claim.clauses.size(); ++i) {
      SCOPED_TRACE(id + clause_letter(i));
      const bool is = std::ranges::count(clauses, i) > 0;
      EXPECT_EQ(claim.clauses[i].verdict == Verdict::kWithdrawn, is);
      EXPECT_FALSE(claim.clauses[i].measured.empty());
      if (is) {
        EXPECT_THAT(claim.remark, HasSubstr(clause_letter(i)));
      }
    }
    EXPECT_THAT(
        claim.clauses[1].measured,
        testing::AnyOf(HasSubstr(fmt::format("of {} comparisons", id == std::string("001.1") ? 2 : 7)),
                       HasSubstr("of 5 comparisons")));
  }
}

TEST_F(ClausesOfStudies, HeadsWithNoiseAreAskedWhetherTheyMoveApart) {
  const Claim claim = claim_of("diversity", "001.2, trained");
  const Clause& clause = claim.clauses.at(9);
  EXPECT_THAT(clause.asked, HasSubstr("at the end minus at the start, of equal heads with noise: above 1"));
  const Arm noisy = with_start(HeadInitialisation::kEqualWithNoise);
  std::vector<double> growth = heads(noisy, &HeadTelemetry::divergence);
  const std::vector<double> start = heads(noisy, &HeadTelemetry::divergence, false);
  for (size_t i = 0; i < growth.size(); ++i) growth[i] = std::log10(growth[i]) - std::log10(start[i]);
  EXPECT_THAT(clause.measured, StartsWith(interval_text(growth, 1) + ","));
  EXPECT_THAT(clause.measured, HasSubstr("of 6 comparisons"));
  EXPECT_LT(start[0], 1e-8);
}

TEST_F(ClausesOfStudies, WhatEqualHeadsLoseByTheScaleOfTheirStartIsMeasured) {
  using enum HeadInitialisation;
  const Claim claim = claim_of("diversity", "001.2, trained");
  ASSERT_EQ(claim.clauses.size(), 10u);
  for (const size_t i : {3, 4, 7})
    EXPECT_THAT(claim.clauses[i].statement, HasSubstr("larger output")) << clause_letter(i);
  EXPECT_THAT(claim.remark,
              testing::AllOf(HasSubstr("(d)"), HasSubstr("(e)"), HasSubstr("(h)"), HasSubstr("(i)")));
  const Arm equal = with_start(kEqual), random = with_start(kXavier), packed = with_start(kXavierPacked),
            level = with_start(kEqual, Start::kEqualVariances);
  const auto output = [](const Arm& arm) {
    return start_variances(config_of(arm, 1), Start::kUsual, 1).output;
  };
  EXPECT_GT(output(equal), 2 * output(random)) << "equal W_i^O add up";
  const Clause& scale = claim.clauses[8];
  EXPECT_EQ(scale.verdict, Verdict::kMeasured);
  EXPECT_THAT(scale.measured,
              testing::AllOf(HasSubstr(fmt::format("at the start: {:.1f}, of the random heads {:.1f};",
                                                   output(equal), output(random))),
                             HasSubstr("minus the random heads of (d) " + minus(level, random) + ","),
                             HasSubstr("of that variance " + minus(level, packed))));
  EXPECT_THAT(claim.clauses[3].measured, StartsWith(minus(equal, random) + ","))
      << "(d), from the usual start";
}

TEST_F(ClausesOfStudies, ARegulariserIsAlsoAskedToBeAsGoodAsNone) {
  const Claim claim = claim_of("diversity", "001.3");
  ASSERT_EQ(claim.clauses.size(), 10u);
  for (const size_t i : {0, 1, 2}) {
    SCOPED_TRACE(i);
    const Clause &better = claim.clauses[2 * i + 1], &as_good = claim.clauses[6 + i];
    EXPECT_THAT(as_good.asked, HasSubstr("between -0.05 and 0.05"));
    EXPECT_EQ(as_good.statement.substr(0, as_good.statement.find(',')),
              better.statement.substr(0, better.statement.find(',')));
    EXPECT_EQ(as_good.measured.substr(0, as_good.measured.find(" seeds")),
              better.measured.substr(0, better.measured.find(" seeds")));
    EXPECT_THAT(as_good.measured, HasSubstr("of 7 comparisons"));
    EXPECT_EQ(better.original, OriginalSays::kSame);
    EXPECT_EQ(as_good.original, OriginalSays::kNothing);
  }
  const Table& table = claim.tables.back();
  EXPECT_EQ(table.columns.back(), "entropy");
  ASSERT_EQ(table.rows.size(), 4u);
  const Arm canonical = canonical_arm(runner());
  EXPECT_EQ(table.rows[0].back(), interval_text(interval_of(heads(canonical, &HeadTelemetry::entropy))));
  Arm positions = runner().base("positions");
  positions.disagreement = {.positions = true};
  const auto change = [&](double HeadTelemetry::*number) {
    return interval_text(paired(heads(positions, number), heads(canonical, number)));
  };
  EXPECT_EQ(claim.clauses[9].verdict, Verdict::kMeasured);
  EXPECT_THAT(claim.clauses[9].measured,
              testing::AllOf(HasSubstr("entropy of a row " + change(&HeadTelemetry::entropy)),
                             HasSubstr("rows " + change(&HeadTelemetry::divergence) + " nats")));
}

TEST_F(ClausesOfStudies, ModelsOfHalfTheWidthDecideNothingAboutEnsembles) {
  Claim claim = claim_of("diversity", "001.5");
  settle(claim);
  EXPECT_EQ(claim.original_statement, OriginalStatement::kNotMade);
  ASSERT_EQ(claim.clauses.size(), 2u);
  EXPECT_NE(claim.clauses[1].verdict, Verdict::kMeasured);
  EXPECT_THAT(claim.clauses[1].statement, HasSubstr("half the width"));
  EXPECT_THAT(claim.original_remark, HasSubstr("half as wide"));
}

TEST_F(ClausesOfStudies, WideHeadsNameWhatRealTextFound) {
  const Claim claim = claim_of("unique-heads", "003.3, trained");
  const std::string page =
      read_file(std::filesystem::path(source_folder()) / "docs/answers/evidence/paper/split-or-project.md");
  // Of the first table: wide heads minus canonical ones, from equal starts.
  const size_t table = page.find("as they are, equal d_model:"), row = page.find("| wide, d_k = d |", table);
  ASSERT_NE(table, std::string::npos);
  ASSERT_NE(row, std::string::npos);
  EXPECT_THAT(claim.remark, HasSubstr("0.051 ± 0.016"));
  EXPECT_THAT(page.substr(row, page.find('\n', row) - row), HasSubstr("| -0.051 ± 0.016 |"));
  for (const char* beside_sliced : {"0.275 ± 0.032", "0.115 ± 0.038"}) {
    EXPECT_THAT(claim.remark, HasSubstr(std::string("sliced ones by ")));
    EXPECT_THAT(claim.remark, HasSubstr(beside_sliced));
    EXPECT_THAT(page, HasSubstr(std::string("-") + beside_sliced));
  }
  EXPECT_THAT(claim.remark, testing::AllOf(HasSubstr("(b)"), HasSubstr("(c)"), HasSubstr("real text")));
}

TEST_F(ClausesOfStudies, HeadsThatStartNearlyEqualAreAskedHowLongTheyTake) {
  const Claim claim = claim_of("diversity", "001.8");
  ASSERT_EQ(claim.clauses.size(), 5u);
  // In eight updates no heads part but those that start a tenth apart, which is too few for a slope.
  EXPECT_EQ(claim.clauses[0].verdict, Verdict::kFail);
  EXPECT_THAT(claim.clauses[0].measured, StartsWith("only after "));
  EXPECT_THAT(claim.clauses[1].asked, HasSubstr("between -0.3 and 0.3"));
  EXPECT_THAT(claim.clauses[2].asked, HasSubstr("above 1"));
  ASSERT_EQ(claim.tables.at(0).rows.size(), 6u);
  EXPECT_EQ(claim.tables[0].rows[0][1], "never");
  EXPECT_EQ(claim.tables[0].rows[5][0], "random");
  ASSERT_EQ(claim.plots.size(), 2u);
  EXPECT_EQ(claim.plots[0].series.size(), 6u);
  // While the difference is small, ten times the noise is ten times the distance: at the start nearly to the digit.
  const auto& smaller = claim.plots[0].series[1];
  const auto& larger = claim.plots[0].series[2];
  EXPECT_NEAR(larger.y[0] / smaller.y[0], 10, 0.5);
}

TEST_F(ClausesOfStudies, HeadsAreAskedHowAlikeTheyAreAtEqualSharpness) {
  const Claim claim = claim_of("diversity", "001.9");
  ASSERT_EQ(claim.clauses.size(), 3u);
  EXPECT_THAT(claim.clauses[0].asked, HasSubstr("below 0"));
  EXPECT_THAT(claim.clauses[2].asked, HasSubstr("above 0"));
  EXPECT_EQ(claim.tables.at(0).rows.size(), 9u) << "the start and eight points";
}

TEST_F(ClausesOfStudies, APenaltyOnWhatHeadsWriteIsComparedWithNone) {
  const Claim claim = claim_of("diversity", "001.10");
  ASSERT_EQ(claim.clauses.size(), 3u);
  EXPECT_THAT(claim.clauses[0].asked, HasSubstr("below 0"));
  EXPECT_THAT(claim.clauses[1].asked, HasSubstr("below 0"));
  ASSERT_EQ(claim.tables.at(2).rows.size(), 2u);
  EXPECT_NE(claim.tables[2].rows[0][1], claim.tables[2].rows[1][1]) << "the penalty changes what is learned";
}

/// Sentences of answers are of the clauses that they are about.
TEST_F(ClausesOfStudies, AnswersSpeakOfTheClausesThatTheyMean) {
  struct Meant {
    const char *study, *claim;
    size_t clause;
    const char* statement;
  };
  const Meant all[] = {{"diversity", "001.8", 0, "The smaller the difference at the start"},
                       {"diversity", "001.8", 2, "It grows: heads that start a millionth apart"},
                       {"diversity", "001.9", 0, "overlap more at the end of training"},
                       {"diversity", "001.9", 1, "than equally sharp heads that read at random"},
                       {"diversity", "001.10", 2, "Penalised, the model is as good"},
                       {"diversity", "001.3", 1, "(subspace: cos(V_i, V_j)), the model is better"},
                       {"diversity", "001.3", 3, "(positions: |A_i * A_j|), the model is better"},
                       {"diversity", "001.3", 5, "(output: cos(Att_i, Att_j)), the model is better"},
                       {"diversity", "001.3", 6, "(subspace: cos(V_i, V_j)), the model is as good"},
                       {"diversity", "001.3", 7, "(positions: |A_i * A_j|), the model is as good"},
                       {"diversity", "001.3", 8, "(output: cos(Att_i, Att_j)), the model is as good"},
                       {"split-or-project", "000.8", 0, "16 heads of 4 are better than 4"},
                       {"split-or-project", "000.8", 2, "At equal parameters, too, 16 heads"}};
  for (const Meant& one : all) {
    SCOPED_TRACE(fmt::format("{} {}", one.claim, clause_letter(one.clause)));
    const Study& study = find_study(one.study);
    const auto speaks = [&](const Sentence& s) { return s.claim == one.claim && s.clause == one.clause; };
    EXPECT_TRUE(std::any_of(study.answer.begin(), study.answer.end(), speaks) ||
                std::any_of(study.alone.begin(), study.alone.end(), speaks));
    const Claim claim = claim_of(one.study, one.claim);
    ASSERT_LT(one.clause, claim.clauses.size());
    EXPECT_THAT(claim.clauses[one.clause].statement, HasSubstr(one.statement));
  }
}

}  // namespace
}  // namespace mh

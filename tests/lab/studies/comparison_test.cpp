// What is compared: models of equal parameters, training for equal time, tables and plots of arms.
#include "lab/studies/comparison.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "lab/studies/equal_start.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/head_columns.h"
#include "tests/lab/studies/tiny_runner.h"

namespace mh {
namespace {

TEST(ShareOfUpdates, IsThatOfTheTimeRoundedTo5Percent) {
  EXPECT_EQ(share_of_updates(1, 2), 0.5);
  EXPECT_EQ(share_of_updates(2, 4), 0.5) << "whatever the unit";
  EXPECT_EQ(share_of_updates(0.94, 1), 0.95);
  EXPECT_EQ(share_of_updates(0.92, 1), 0.9);
  EXPECT_EQ(share_of_updates(0.34, 1), 0.35);
  EXPECT_EQ(share_of_updates(0.31, 1), 0.3);
}

TEST(ShareOfUpdates, LeavesAnArmAloneThatIsWithin5PercentOfTheQuickest) {
  EXPECT_EQ(share_of_updates(1, 1), 1);
  EXPECT_EQ(share_of_updates(0.951, 1), 1);
  EXPECT_EQ(share_of_updates(0.95, 1), 0.95);
}

TEST(ShareOfUpdates, IsAtLeast5Percent) {
  EXPECT_EQ(share_of_updates(0.06, 1), 0.05);
  EXPECT_EQ(share_of_updates(0.01, 1), 0.05);
  EXPECT_EQ(share_of_updates(1, 1e9), 0.05);
}

TranslatorShape some_model() {
  TranslatorShape model = size_settings(StudySize::kStandard).model;
  model.vocabulary_size = 101;
  return model;
}

/// Parameters of one number more of d_ff, everywhere.
int64_t of_unit(const TranslatorShape& model) {
  TranslatorShape larger = model;
  ++larger.encoder_ff, ++larger.decoder_ff;
  return parameters_of(larger) - parameters_of(model);
}

TEST(WithParameters, ComesAsNearAsTheFeedForwardSizeAllows) {
  const TranslatorShape model = some_model();
  const int64_t target = parameters_of(model), unit = of_unit(model);
  EXPECT_EQ(unit, 4 * (2 * 64 + 1));
  TranslatorShape sliced = model;
  sliced.geometry.input = HeadInput::slices();
  EXPECT_LT(parameters_of(sliced), target);
  for (const int64_t wanted :
       {target, target + unit / 2 - 1, target + unit / 2 + 1, target + 7 * unit, target - unit}) {
    const TranslatorShape fitted = with_parameters(sliced, wanted);
    EXPECT_LE(2 * std::abs(parameters_of(fitted) - wanted), unit) << wanted;
    EXPECT_EQ(fitted.encoder_ff, fitted.decoder_ff);
    EXPECT_EQ(fitted.geometry, sliced.geometry);
  }
  EXPECT_EQ(with_parameters(model, target).encoder_ff, model.encoder_ff);
  EXPECT_EQ(with_parameters(model, target + unit).encoder_ff, model.encoder_ff + 1);
  EXPECT_EQ(with_parameters(model, target - unit).decoder_ff, model.decoder_ff - 1);
}

TEST(WithParameters, KeepsAFeedForwardLayerWhereTheTargetIsTooSmall) {
  const TranslatorShape smallest = with_parameters(some_model(), 0);
  EXPECT_EQ(smallest.encoder_ff, 1);
  EXPECT_EQ(smallest.decoder_ff, 1);
}

TEST(AsLargeAs, CountsTheColumnsThatHeadsRead) {
  const Arm canonical{.name = "canonical", .model = some_model()};
  for (const int size : {8, 16, 48}) {
    Arm cut{.name = "cut", .model = some_model()};
    cut.model.geometry.d_key = cut.model.geometry.d_value = 16;
    cut.columns = [size](uint64_t draw) { return random_columns(4, size, 64, draw); };
    const Arm fitted = as_large_as(cut, canonical);
    const int64_t wanted = parameters_of(canonical.model);
    for (const uint64_t seed : {1, 2})
      EXPECT_LE(2 * std::abs(parameters_of(config_of(fitted, seed)) - wanted), of_unit(canonical.model))
          << size;
    EXPECT_GT(fitted.model.encoder_ff, canonical.model.encoder_ff);
    EXPECT_EQ(fitted.model.encoder_ff, fitted.model.decoder_ff);
    EXPECT_TRUE(fitted.model.own_heads.empty()) << "columns are drawn for each seed, not kept";
    EXPECT_EQ(fitted.name, "cut");
    // And the other way round.
    const Arm small = as_large_as(canonical, cut);
    EXPECT_LE(2 * std::abs(parameters_of(small.model) - parameters_of(config_of(cut, 1))),
              of_unit(cut.model));
    EXPECT_LT(small.model.encoder_ff, canonical.model.encoder_ff);
  }
}

TEST(TwoStarts, AreTheSameArmFromBothStarts) {
  Arm arm{.name = "wide", .model = some_model(), .start = Start::kEqualVariances};
  arm.model.geometry.d_key = 64;
  std::vector<TwoStarts> arms = {two_starts(arm), two_starts({.name = "other", .model = some_model()})};
  EXPECT_EQ(arms[0].equal.start, Start::kEqualVariances);
  EXPECT_EQ(arms[0].usual.start, Start::kUsual);
  EXPECT_EQ(arms[0].equal.name, "wide");
  EXPECT_EQ(arms[0].usual.name, "wide, usual start");
  EXPECT_EQ(arms[0].equal.model.geometry, arm.model.geometry);
  EXPECT_EQ(arms[0].usual.model.geometry, arm.model.geometry);
  EXPECT_EQ(arms[1].equal.start, Start::kEqualVariances);
  EXPECT_THAT(both(arms),
              testing::ElementsAre(&arms[0].equal, &arms[0].usual, &arms[1].equal, &arms[1].usual));
}

/// "2.134 ± 0.012"
std::string text(const std::vector<double>& numbers, int digits = 3) {
  return interval_text(interval_of(numbers), digits);
}

/// loss(a) - loss(b), by seed.
std::vector<double> minus(ArmRunner& runner, const Arm& a, const Arm& b) {
  std::vector<double> numbers;
  for (size_t i = 0; i < runner.seeds().size(); ++i)
    numbers.push_back(runner.runs(a)[i].loss - runner.runs(b)[i].loss);
  return numbers;
}

TEST(ArmTable, ComparesWithTheFirst) {
  test::TinyRunner tiny;
  ArmRunner& runner = *tiny;
  const Arm canonical = canonical_arm(runner);
  EXPECT_EQ(canonical.name, "canonical, 4 heads");
  Arm sliced = sliced_arm(runner);
  sliced.learning_rate = 0.5;
  Table table;
  table.caption = "a caption";
  fill_arms(table, runner, {canonical, sliced});
  EXPECT_EQ(table.caption, "a caption");
  EXPECT_THAT(table.columns, testing::ElementsAre("arm", "rate", "params", "loss", "minus first", "exact %"));
  ASSERT_EQ(table.rows.size(), 2u);
  for (const auto& row : table.rows) ASSERT_EQ(row.size(), table.columns.size());
  EXPECT_EQ(table.rows[0][0], "canonical, 4 heads");
  EXPECT_EQ(table.rows[0][1], "0.007");
  EXPECT_EQ(table.rows[1][1], "0.0035");
  EXPECT_EQ(table.rows[0][2], std::to_string(parameters_of(canonical.model)));
  EXPECT_EQ(table.rows[0][3], text(losses(runner.runs(canonical))));
  EXPECT_EQ(table.rows[0][4], "");
  EXPECT_EQ(table.rows[1][4], text(minus(runner, sliced, canonical)));
  EXPECT_EQ(table.rows[0][5], "0.0 ± 0.0") << "eight updates translate no sentence";
}

TEST(StartsTable, HasBothStartsWithTheirDifferencesFromTheBase) {
  test::TinyRunner tiny;
  ArmRunner& runner = *tiny;
  const Arm canonical = canonical_arm(runner);
  TwoStarts sliced = two_starts(sliced_arm(runner));
  sliced.usual.learning_rate = 2;
  Table table;
  fill_starts(table, runner, canonical, {sliced});
  ASSERT_EQ(table.rows.size(), 2u);
  for (const auto& row : table.rows) ASSERT_EQ(row.size(), table.columns.size());
  EXPECT_THAT(table.columns,
              testing::ElementsAre("arm", "params", "equal start: rate", "loss", "minus first",
                                   "usual start: rate", "loss", "minus first", "its scores, output"));
  const auto variances = [](const Arm& arm) {
    const StartVariances v = start_variances(config_of(arm, 1), Start::kUsual, 1);
    return fmt::format("{:.2f}, {:.2f}", v.scores, v.output);
  };
  const std::string loss = text(losses(runner.runs(canonical)));
  EXPECT_THAT(table.rows[0],
              testing::ElementsAre(canonical.name, std::to_string(parameters_of(canonical.model)), "0.007",
                                   loss, "", "0.007", loss, "", variances(canonical)));
  EXPECT_THAT(table.rows[1],
              testing::ElementsAre("sliced input", std::to_string(parameters_of(sliced.equal.model)), "0.007",
                                   text(losses(runner.runs(sliced.equal))),
                                   text(minus(runner, sliced.equal, canonical)), "0.014",
                                   text(losses(runner.runs(sliced.usual))),
                                   text(minus(runner, sliced.usual, canonical)), variances(sliced.usual)));
  EXPECT_NE(table.rows[1][3], table.rows[1][6]) << "two runs from two starts";
}

TEST(AtEqualTime, GivesSlowArmsFewerUpdates) {
  SizeSettings settings = test::tiny_settings();
  settings.updates = 20;
  test::TinyRunner tiny(settings);
  ArmRunner& runner = *tiny;
  const Arm canonical = canonical_arm(runner);
  Arm wide = runner.base("wide");
  wide.model.geometry.d_key = wide.model.geometry.d_value = 128;  // 32 times as wide
  wide.learning_rate = 0.5, wide.updates = 0.8;
  const std::vector<Arm> timed = at_equal_time(runner, {wide, canonical});
  ASSERT_EQ(timed.size(), 2u);

  EXPECT_EQ(timed[1].name, canonical.name);
  EXPECT_EQ(timed[1].updates, 1) << "the quickest keeps all";
  EXPECT_EQ(runner.runs(timed[1])[0].updates, 20);

  const std::vector<double> seconds = runner.seconds_of_update({wide, canonical});
  const double share = share_of_updates(seconds[1], 0.8 * seconds[0]);
  EXPECT_LE(share, 0.75);
  EXPECT_DOUBLE_EQ(timed[0].updates, 0.8 * share);
  EXPECT_EQ(timed[0].name, fmt::format("wide, {:.0f} % of the updates", 100 * share));
  EXPECT_EQ(timed[0].learning_rate, 0.5) << "its own rate";
  EXPECT_EQ(runner.runs(timed[0])[0].updates, std::max(1L, std::lround(0.8 * share * 20)));
  const size_t steps = tiny.steps.size();
  EXPECT_EQ(at_equal_time(runner, {wide, canonical})[0].updates, timed[0].updates)
      << "by the times that were kept";
  EXPECT_EQ(tiny.steps.size(), steps);
}

TEST(SecondsOfUpdate, AreFoundAgainAmongThoseThatWereMeasuredTogether) {
  test::TinyRunner tiny;
  ArmRunner& runner = *tiny;
  const Arm canonical = canonical_arm(runner);
  Arm wide = wide_arm(runner);
  wide.model.geometry.d_key = wide.model.geometry.d_value = 128;
  const std::vector<double> seconds = runner.seconds_of_update({canonical, wide});
  ASSERT_EQ(seconds.size(), 2u);
  EXPECT_GT(seconds[0], 0);
  EXPECT_GT(seconds[1], seconds[0]) << "32 times as wide";
  EXPECT_THAT(runner.seconds_of_update({wide}), testing::ElementsAre(seconds[1]));
  EXPECT_TRUE(tiny.kept().empty()) << "a time is no run";
}

TEST(EqualTimeTable, HasTheTimesOfAnUpdateAndOfTheTraining) {
  SizeSettings settings = test::tiny_settings();
  settings.updates = 20;
  test::TinyRunner tiny(settings);
  ArmRunner& runner = *tiny;
  const Arm canonical = canonical_arm(runner);
  Arm wide = wide_arm(runner);
  wide.model.geometry.d_key = wide.model.geometry.d_value = 128;
  Table table;
  fill_equal_time(table, runner, {canonical, wide});
  EXPECT_THAT(table.columns, testing::ElementsAre("arm", "rate", "params", "loss", "minus first", "exact %",
                                                  "ms an update", "CPU s"));
  ASSERT_EQ(table.rows.size(), 2u);
  const std::vector<double> seconds = runner.seconds_of_update({canonical, wide});
  const std::vector<Arm> timed = at_equal_time(runner, {canonical, wide});
  for (const size_t i : {0, 1}) {
    SCOPED_TRACE(i);
    ASSERT_EQ(table.rows[i].size(), table.columns.size());
    EXPECT_EQ(table.rows[i][0], timed[i].name);
    EXPECT_EQ(table.rows[i][6], fmt::format("{:.1f}", 1000 * seconds[i]));
    const auto updates = static_cast<double>(runner.runs(timed[i])[0].updates);
    EXPECT_EQ(table.rows[i][7], fmt::format("{:.1f}", seconds[i] * updates));
  }
  EXPECT_EQ(table.rows[1][4], text(minus(runner, timed[1], timed[0])));
  EXPECT_LT(timed[1].updates, 1);
}

TEST(AtEqualTime, LeavesAnArmBesideItselfAlone) {
  test::TinyRunner tiny;
  Arm arm = canonical_arm(*tiny);
  const std::vector<Arm> timed = at_equal_time(*tiny, {arm, arm});
  EXPECT_EQ(timed[0].updates, 1);
  EXPECT_EQ(timed[1].updates, 1);
  EXPECT_EQ(timed[1].name, arm.name);
}

TEST(CurvePlot, HasTheMeanAndALineForEachSeed) {
  test::TinyRunner tiny;
  ArmRunner& runner = *tiny;
  const Arm canonical = canonical_arm(runner), sliced = sliced_arm(runner);
  Plot plot{.title = "a title"};
  fill_curves(plot, runner, {canonical, sliced});
  EXPECT_EQ(plot.title, "a title");
  EXPECT_EQ(plot.kind, PlotKind::kLines);
  ASSERT_EQ(plot.series.size(), 2u);
  for (size_t arm = 0; arm < 2; ++arm) {
    const Series& series = plot.series[arm];
    const auto& runs = runner.runs(arm == 0 ? canonical : sliced);
    EXPECT_EQ(series.name, arm == 0 ? canonical.name : sliced.name);
    EXPECT_THAT(series.x, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8)) << "not the loss before training";
    ASSERT_EQ(series.lines.size(), 2u);
    ASSERT_EQ(series.y.size(), series.x.size());
    for (size_t i = 0; i < series.x.size(); ++i) {
      for (size_t seed = 0; seed < 2; ++seed) EXPECT_EQ(series.lines[seed][i], runs[seed].curve[i + 1].loss);
      EXPECT_DOUBLE_EQ(series.y[i], (series.lines[0][i] + series.lines[1][i]) / 2);
    }
  }
  EXPECT_NE(plot.series[0].lines[0], plot.series[0].lines[1]);
  EXPECT_NE(plot.series[0].lines[0], plot.series[1].lines[0]);
}

TEST(LossPlot, HasAStripOfTestLossesForEachArm) {
  test::TinyRunner tiny;
  const Arm canonical = canonical_arm(*tiny);
  Plot plot;
  fill_losses(plot, *tiny, {canonical});
  EXPECT_EQ(plot.kind, PlotKind::kStrips);
  ASSERT_EQ(plot.series.size(), 1u);
  EXPECT_EQ(plot.series[0].name, canonical.name);
  EXPECT_EQ(plot.series[0].y, losses(tiny->runs(canonical)));
  EXPECT_TRUE(plot.series[0].x.empty());
}

}  // namespace
}  // namespace mh

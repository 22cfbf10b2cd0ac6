// Each arm gets the learning rate that suits it, and each regulariser the weight that suits it, by validation.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/studies/arms.h"
#include "tests/lab/studies/tiny_runner.h"

namespace mh {
namespace {

TEST(NextToTry, BeginsWithTheRateAndTwiceTheRate) {
  EXPECT_EQ(next_to_try({}), 0);
  EXPECT_EQ(next_to_try({{0, 3.0}}), 1);
  EXPECT_EQ(next_to_try({{1, 3.0}}), 0);
}

TEST(NextToTry, GoesOnInTheBetterDirectionUntilTheLowestIsBetweenHigherOnes) {
  EXPECT_EQ(next_to_try({{0, 3.0}, {1, 2.0}}), 2);
  EXPECT_EQ(next_to_try({{0, 3.0}, {1, 2.0}, {2, 1.0}}), 3);
  EXPECT_EQ(next_to_try({{0, 3.0}, {1, 2.0}, {2, 2.5}}), std::nullopt);
  EXPECT_EQ(next_to_try({{0, 2.0}, {1, 3.0}}), -1);
  EXPECT_EQ(next_to_try({{-1, 1.0}, {0, 2.0}, {1, 3.0}}), -2);
  EXPECT_EQ(next_to_try({{-1, 2.5}, {0, 2.0}, {1, 3.0}}), std::nullopt);
}

TEST(NextToTry, StopsAfterFiveStepsEitherWay) {
  std::map<int, double> falling, rising;
  for (int power = -5; power <= 5; ++power) {
    if (power >= 0) falling[power] = -power;
    if (power <= 1) rising[power] = power;
  }
  EXPECT_EQ(next_to_try(falling), std::nullopt);
  EXPECT_EQ(next_to_try(rising), std::nullopt);
  falling.erase(5), rising.erase(-5);
  EXPECT_EQ(next_to_try(falling), 5);
  EXPECT_EQ(next_to_try(rising), -5);
}

TEST(NextToTry, LeavesRatesAtWhichTheLossIsNoNumber) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  EXPECT_EQ(next_to_try({{0, 2.0}, {1, kNone}}), -1);
  EXPECT_EQ(next_to_try({{0, kNone}, {1, kNone}}), -1);
  EXPECT_EQ(next_to_try({{-1, 3.0}, {0, 2.0}, {1, kNone}}), std::nullopt);
}

TEST(NextToTry, TakesTheSmallerOfTwoRatesThatAreEquallyGood) {
  EXPECT_EQ(next_to_try({{0, 2.0}, {1, 2.0}}), -1);
  EXPECT_EQ(next_to_try({{-1, 3.0}, {0, 2.0}, {1, 2.0}}), std::nullopt);
  // Of an arm that learns nothing all are: it comes to an end.
  std::map<int, double> losses;
  int tried = 0;
  while (const std::optional<int> power = next_to_try(losses)) losses[*power] = 2, ++tried;
  EXPECT_EQ(tried, 2 + 5);
}

/// Validation losses of the trials, and of the whole runs, by power of two and seed.
struct Trials {
  std::map<int, std::map<uint64_t, double>> losses, whole;

  Trials(const std::vector<nlohmann::json>& kept, double rate, int64_t updates) {
    for (const auto& run : kept) {
      const auto& is = run["is"];
      const double power = std::log2(is["learning_rate"].get<double>() / rate);
      EXPECT_NEAR(power, std::round(power), 1e-9);
      auto& of_length = is["updates"] == updates ? losses : whole;
      of_length[static_cast<int>(std::lround(power))][is["seed"]] = run["curve"].back()["loss"];
    }
  }
  double of_first_seed(int power) const { return losses.at(power).at(1); }
  /// The power with the lowest loss of the first seed.
  int best() const {
    int best = losses.begin()->first;
    for (const auto& [power, of_seeds] : losses) {
      if (of_first_seed(power) < of_first_seed(best)) best = power;
    }
    return best;
  }
  /// The other of the two best.
  int second() const {
    int second = best() == losses.begin()->first ? losses.rbegin()->first : losses.begin()->first;
    for (const auto& [power, of_seeds] : losses) {
      if (power != best() && of_first_seed(power) < of_first_seed(second)) second = power;
    }
    return second;
  }
  /// Of the two best rates the one whose whole run is the better one, where the higher one won the trials.
  int chosen() const {
    if (second() > best()) return best();
    return whole.at(second()).at(1) < whole.at(best()).at(1) ? second() : best();
  }
  /// How many trials there were.
  int count() const {
    int count = 0;
    for (const auto& [power, of_seeds] : losses) count += static_cast<int>(of_seeds.size());
    return count;
  }
};

SizeSettings settings_to_tune(double rate) {
  SizeSettings settings = test::tiny_settings();
  settings.updates = 60, settings.warmup = 9, settings.learning_rate = rate;
  settings.rate_seeds = 1, settings.rate_updates = 1.0 / 3;
  return settings;
}

TEST(Tune, GoesAsFarAsTheRateIsTooSmallOrTooLarge) {
  for (const double rate : {4e-3, 0.5}) {
    SCOPED_TRACE(rate);
    test::TinyRunner runner(settings_to_tune(rate));
    Arm arm = runner->base("base");
    runner->tune({&arm});
    const Trials trials(runner.kept(), rate, 20);
    const int best = trials.best();
    EXPECT_EQ(arm.learning_rate, std::ldexp(1, trials.chosen()));
    EXPECT_EQ(runner->rate_of(arm), fmt::format("{:g}", rate * arm.learning_rate));
    if (rate < 0.01) {
      EXPECT_GE(best, 2);
      EXPECT_EQ(trials.losses.begin()->first, 0) << "half the rate is tried only where twice is no better";
      EXPECT_EQ(trials.losses.rbegin()->first, std::min(5, best + 1)) << "one beyond the best";
    } else {
      EXPECT_LE(best, -2);
      EXPECT_EQ(trials.losses.begin()->first, std::max(-5, best - 1)) << "one beyond the best";
      EXPECT_EQ(trials.losses.rbegin()->first, 1);
    }
    EXPECT_EQ(trials.count(), trials.losses.rbegin()->first - trials.losses.begin()->first + 1)
        << "every power between, with one seed";
    EXPECT_EQ(trials.whole.at(trials.chosen()).size(), 2u) << "the arm is trained with all seeds";
    const size_t kept = runner.kept().size();
    EXPECT_EQ(runner->runs(arm)[0].updates, 60);
    EXPECT_EQ(runner.kept().size(), kept);
  }
}

TEST(Tune, ComparesTheTwoBestAgainWithMoreSeeds) {
  SizeSettings settings = settings_to_tune(1.6e-2);
  settings.rate_seeds = 2;
  test::TinyRunner runner(settings);
  Arm arm = runner->base("base");
  runner->tune({&arm});
  const Trials trials(runner.kept(), settings.learning_rate, 20);
  std::vector<int> again;
  double lowest = std::numeric_limits<double>::infinity(), other = lowest;
  int best = 0;
  for (const auto& [power, of_seeds] : trials.losses) {
    if (of_seeds.size() == 1) {
      other = std::min(other, of_seeds.at(1));
      continue;
    }
    again.push_back(power);
    const double mean = (of_seeds.at(1) + of_seeds.at(2)) / 2;
    if (mean < lowest) lowest = mean, best = power;
  }
  ASSERT_EQ(again.size(), 2u);
  EXPECT_GE(other, std::max(trials.of_first_seed(again[0]), trials.of_first_seed(again[1])))
      << "no other was better with the first seed";
  if (best == std::min(again[0], again[1])) {
    EXPECT_EQ(arm.learning_rate, std::ldexp(1, best)) << "else whole runs decide";
  }
}

TEST(Tune, WholeRunsDecideWhereTheHigherRateWonShortTrials) {
  int higher_won = 0, lower_won = 0;
  for (const double rate : {4e-3, 4.8e-3, 5.7e-3, 6.7e-3}) {  // the same grid at four places
    SCOPED_TRACE(rate);
    test::TinyRunner runner(settings_to_tune(rate));
    Arm arm = runner->base("base");
    runner->tune({&arm});
    const Trials trials(runner.kept(), rate, 20);
    const int best = trials.best(), second = trials.second();
    EXPECT_EQ(arm.learning_rate, std::ldexp(1, trials.chosen()));
    if (best > second) {
      ++higher_won;
      EXPECT_EQ(trials.whole.size(), 2u) << "both are trained in full";
      EXPECT_EQ(trials.whole.at(best).size() + trials.whole.at(second).size(), 3u)
          << "the one that is not chosen with the first seed alone";
    } else {
      ++lower_won;
      EXPECT_EQ(trials.whole.size(), 1u);
      EXPECT_EQ(trials.whole.at(best).size(), 2u);
    }
  }
  EXPECT_GT(higher_won, 0);
  EXPECT_GT(lower_won, 0);
}

TEST(Tune, KeepsATrialThatIsAWholeRun) {
  SizeSettings settings = settings_to_tune(1.6e-2);
  settings.updates = 20, settings.rate_seeds = 2, settings.rate_updates = 1;
  test::TinyRunner runner(settings);
  Arm arm = runner->base("base");
  runner->tune({&arm});
  const Trials trials(runner.kept(), settings.learning_rate, 20);
  EXPECT_EQ(trials.count(), static_cast<int>(trials.losses.size()) + 2)
      << "the best was trained with both seeds already";
  EXPECT_TRUE(trials.whole.empty());
}

TEST(Tune, TrainsArmsOfTheQuickSizeAtTheRatesTheyHave) {
  const SizeSettings settings = test::tiny_settings();
  test::TinyRunner runner(settings, StudySize::kQuick);
  std::vector<Arm> arms = {runner->base("base")};
  arms[0].disagreement = {.output = true};
  runner->tune(arms);
  EXPECT_TRUE(runner->tune_weight(arms).rows.empty());
  EXPECT_EQ(arms[0].learning_rate, 1);
  EXPECT_EQ(arms[0].disagreement_weight, 1);
  const auto kept = runner.kept();
  EXPECT_EQ(kept.size(), settings.seeds.size());
  for (const auto& run : kept) {
    EXPECT_EQ(run["is"]["updates"], settings.updates);
    EXPECT_EQ(run["is"]["learning_rate"], settings.learning_rate);
  }
}

TEST(TuneWeight, ChoosesLambdaAtTheRateOfTheSizeAndThenTheRate) {
  const SizeSettings settings = settings_to_tune(3.2e-2);
  test::TinyRunner runner(settings);
  std::vector<Arm> arms = {runner->base("one"), runner->base("two")};
  arms[0].disagreement = {.output = true}, arms[1].disagreement = {.positions = true};
  const Table table = runner->tune_weight(arms);
  ASSERT_EQ(table.rows.size(), 4u);
  for (size_t i = 0; i < arms.size(); ++i) {
    SCOPED_TRACE(arms[i].name);
    // Losses of the trials at the size's rate, by half powers of ten.
    std::map<int, double> losses;
    for (const auto& run : runner.kept()) {
      const auto& is = run["is"];
      if (run["arm"] != arms[i].name || is["updates"] != 20 || is["learning_rate"] != settings.learning_rate)
        continue;
      const double power = 2 * std::log10(is.value("disagreement_weight", 1.0));
      losses[static_cast<int>(std::lround(power))] = run["curve"].back()["loss"];
    }
    ASSERT_GE(losses.size(), 3u);
    EXPECT_EQ(next_to_try(losses), std::nullopt);
    const auto best = std::min_element(losses.begin(), losses.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_FLOAT_EQ(arms[i].disagreement_weight, static_cast<float>(std::pow(10, best->first / 2.0)));
    for (size_t row = 2 * i; row < 2 * i + 2; ++row) EXPECT_EQ(table.rows[row][0], arms[i].name);
    const std::vector<std::string> chosen = {arms[i].name,
                                             fmt::format("{:.2g}", std::pow(10, best->first / 2.0)),
                                             fmt::format("{:.3f}", best->second)};
    EXPECT_THAT(table.rows, testing::Contains(chosen));
    EXPECT_EQ(runner->runs(arms[i])[0].updates, 60);
  }
}

}  // namespace
}  // namespace mh

// Runs are kept: a study that was stopped resumes with the missing runs, and a run is found again by its
// configuration.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <iterator>

#include "lab/studies/arms.h"
#include "lab/studies/comparison.h"
#include "lab/studies/micro_language.h"
#include "lab/studies/report.h"
#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/io/lines.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

TEST(MicroLanguage, AgreesAndHasTreesOfBothSides) {
  const GrammarCorpus corpus = make_micro_corpus(3, 300, 20, 40);
  ASSERT_EQ(corpus.train.size(), 300u);
  ASSERT_EQ(corpus.test.size(), 40u);
  bool inverted = false, last = false;
  for (const GrammarSentence& sentence : corpus.train) {
    EXPECT_TRUE(is_tree(sentence.source)) << text_of(sentence.source);
    EXPECT_TRUE(is_tree(sentence.target)) << text_of(sentence.target);
    const std::string english = text_of(sentence.source), german = text_of(sentence.target);
    if (german.find("heute sieht") == 0) inverted = true;
    if (german.find("dass") != std::string::npos)
      last = last || sentence.target[sentence.target.size() - 2].upos == "VERB";
    EXPECT_EQ(english.find("the queen") == 0, german.find("die Königin") == 0) << english << " / " << german;
    EXPECT_EQ(german.find("ein Frau"), std::string::npos) << german;
  }
  EXPECT_TRUE(inverted);
  EXPECT_TRUE(last);
}

TEST(SlowArms, GoOnWhereTheyWereStoppedAndAreFoundAgain) {
  const test::ScratchFolder folder;
  int begun = 0;
  std::atomic<bool> stop{false};
  const int threads = thread_count();
  set_thread_count(2);  // two runs side by side, then one
  ArmRunner::Options options{.size = StudySize::kQuick, .runs = folder.path() / "runs"};
  options.watcher.step = [&](const std::string&) { stop = ++begun == 3; };
  options.watcher.stop = [&] { return stop.load(); };
  Arm arm;
  {
    ArmRunner runner(options);
    arm = runner.base("base");
    arm.updates = 0.1;
    EXPECT_THROW(runner.runs(arm), Interrupted);
    EXPECT_EQ(begun, 3);
  }
  stop = false;
  ArmRunner runner(options);
  ASSERT_EQ(runner.runs(arm).size(), 3u);
  EXPECT_EQ(begun, 4) << "the runs of two seeds were there; one was missing";
  const ArmRun first = runner.runs(arm)[0];
  EXPECT_EQ(first.updates, 24);
  EXPECT_LT(first.curve.back().loss, first.curve.front().loss);
  EXPECT_NEAR(runner.test_loss(*runner.trained(arm, 1)), first.loss, 1e-6);
  EXPECT_NEAR(runner.ensemble_loss({runner.trained(arm, 1).get()}), first.loss, 1e-4);

  for (const auto& file : std::filesystem::directory_iterator(options.runs)) {
    if (file.path().extension() == ".safetensors") std::filesystem::remove(file.path());
  }
  EXPECT_NEAR(runner.test_loss(*runner.trained(arm, 1)), first.loss, 1e-6) << "curves alone were kept";

  begun = 0;
  ArmRunner again(options);
  EXPECT_EQ(again.runs(arm)[0].loss, first.loss);
  EXPECT_EQ(begun, 0);
  begun = 10;  // not to be stopped again
  Arm other = arm;
  other.member = 1;
  EXPECT_NE(again.runs(other)[0].loss, first.loss);
  set_thread_count(threads);
}

TEST(SlowArms, AreTunedByTheirLossOnValidation) {
  SizeSettings settings = size_settings(StudySize::kStandard);
  settings.grammar.train = 2000, settings.grammar.valid = settings.grammar.test = 40;
  settings.model.d_model = 32;
  settings.updates = 60, settings.batch_tokens = 400, settings.warmup = 12;
  settings.seeds = {1, 2}, settings.rate_seeds = 1, settings.rate_updates = 1.0 / 3;
  struct Case {
    double rate, best;
    int runs;  // trials of 20 updates, and one whole run for each of two seeds
  };
  for (const auto& [rate, best, runs] : {Case{1e-3, 2, 2 + 2}, Case{0.3, 0.5, 3 + 2}}) {
    const test::ScratchFolder folder;
    settings.learning_rate = rate;
    ArmRunner runner({.size = StudySize::kStandard, .settings = settings, .runs = folder.path() / "runs"});
    Arm arm = runner.base("base");
    runner.tune({&arm});
    EXPECT_EQ(arm.learning_rate, best) << rate;
    EXPECT_EQ(runner.rate_of(arm), fmt::format("{:g}", rate * best));
    EXPECT_EQ(std::ssize(read_lines(folder.path() / "runs" / "runs.jsonl")), runs)
        << "half the rate is tried only where twice is no better";
    EXPECT_EQ(runner.runs(arm)[0].updates, 60);
  }
}

TEST(Arms, RealTextNeedsItsFolder) {
  EXPECT_THROW(ArmRunner({.size = StudySize::kPaper}), UsageError);
}

TEST(Comparison, FeedForwardMakesParametersEqual) {
  EncoderDecoderConfig model = size_settings(StudySize::kStandard).model;
  model.vocabulary_size = 101;
  EncoderDecoderConfig sliced = model;
  sliced.geometry.input = HeadInput::slices();
  const int64_t target = parameters_of(model);
  EXPECT_LT(parameters_of(sliced), target);
  EXPECT_NEAR(static_cast<double>(parameters_of(with_parameters(sliced, target))),
              static_cast<double>(target), 4 * (2 * 64 + 1) / 2.0 + 1);
}

TEST(Statistics, IntervalsAreStudents) {
  const Interval i = interval_of(std::vector<double>{1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(i.mean, 2.5);
  EXPECT_NEAR(i.half, 3.182 * 1.2909944487 / 2, 1e-9);  // scipy.stats.t.interval(0.95, 3, 2.5, sem)
  EXPECT_EQ(above(i, 0), Verdict::kPass);
  EXPECT_EQ(above(i, 2), Verdict::kUndecided);
  EXPECT_EQ(above(i, 5), Verdict::kFail);
  EXPECT_EQ(below(i, 5), Verdict::kPass);
  EXPECT_EQ(above(interval_of(std::vector<double>{7}), 0), Verdict::kUndecided) << "one seed says nothing";
}

TEST(Report, TerminalLinesFitAndMarkdownHasPlots) {
  StudyReport report{.name = "n",
                     .question = "Why?",
                     .answer = "So.",
                     .conclusion = "Thus.",
                     .size = "quick",
                     .command = "c",
                     .machine = "m"};
  Claim claim{.id = "000.1, trained",
              .statement = std::string(30, 'x') + " says that a < b",
              .measured = "1 | 2",
              .tolerance = "3",
              .verdict = Verdict::kFail};
  claim.tables.push_back({"caption", {"a", "b"}, {{"x|y", "2"}}});
  claim.plots.push_back({"title <1>", "x", "y", false, {{"s", {1, 2}, {3, 4}, {2, 3}, {4, 5}}}});
  report.claims.push_back(claim);
  EXPECT_EQ(report.count(Verdict::kFail), 1);
  EXPECT_THAT(report_for_terminal(report), testing::HasSubstr("FAIL (asked: 3)"));
  const MarkdownReport page = report_as_markdown(report);
  EXPECT_THAT(page.text, testing::HasSubstr("| x\\|y | 2 |"));
  ASSERT_EQ(page.plots.size(), 1u);
  EXPECT_EQ(page.plots[0].first, "n-000.1--trained-1.svg") << "no spaces in links";
  EXPECT_THAT(page.text, testing::HasSubstr(page.plots[0].first));
  EXPECT_THAT(page.plots[0].second,
              testing::AllOf(testing::HasSubstr("title &lt;1&gt;"), testing::HasSubstr("<polygon")));

  const Plot strips{.title = "t",
                    .x_label = "x",
                    .y_label = "y",
                    .series = {{"one", {}, {1, 2, 6}, {}, {}}, {"a <b>", {}, {4}, {}, {}}},
                    .kind = PlotKind::kStrips};
  const std::string picture = plot_as_svg(strips);
  EXPECT_THAT(picture,
              testing::AllOf(testing::HasSubstr(">one<"), testing::HasSubstr("a &lt;b&gt;"),
                             testing::HasSubstr("opacity=\"0.25\""), testing::Not(testing::HasSubstr("nan")),
                             testing::Not(testing::HasSubstr("inf"))));
  size_t points = 0;
  for (size_t at = 0; (at = picture.find("<circle", at)) != std::string::npos; ++at) ++points;
  EXPECT_EQ(points, 4u);
  EXPECT_THAT(plot_for_terminal(strips, ""),
              testing::AllOf(testing::HasSubstr(" 3\n"), testing::HasSubstr(" 4\n")));
  EXPECT_EQ(wrapped("aa bb cc", "  ", 7, "  "), "  aa bb\n    cc\n");
}

}  // namespace
}  // namespace mh

// How arms are trained: runs are kept, so a study that was stopped resumes with those it lacks, and a run is found
// again by its configuration.
#include "lab/studies/arms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "lab/studies/micro_language.h"
#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/head_columns.h"
#include "tests/lab/studies/tiny_runner.h"

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
  set_thread_count(2);  // two runs side by side
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
  // The third begins when the first of two side by side ends; the other may still be at work, and is stopped too.
  const auto kept = static_cast<int>(read_lines((options.runs / "runs.jsonl").string()).size());
  EXPECT_GE(kept, 1);
  EXPECT_LT(kept, 3);
  ArmRunner runner(options);
  ASSERT_EQ(runner.runs(arm).size(), 3u);
  EXPECT_EQ(begun, 3 + 3 - kept) << "only the missing runs are trained";
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

TEST(Arms, TrainOnlyTheSeedThatIsAskedFor) {
  test::TinyRunner runner;
  const Arm arm = runner->base("base");
  const auto seeds = [&] {
    std::multiset<int> trained;
    for (const auto& run : runner.kept()) trained.insert(run["seed"].get<int>());
    return trained;
  };
  runner->trained(arm, 2);
  EXPECT_EQ(seeds(), (std::multiset<int>{2}));
  runner->trained(arm, 2);
  EXPECT_EQ(seeds(), (std::multiset<int>{2}));
  const auto& fresh = runner->runs(arm, {7, 5});
  ASSERT_EQ(fresh.size(), 2u);
  EXPECT_EQ(fresh[0].seed, 7u) << "in the order that was asked for";
  EXPECT_EQ(fresh[1].seed, 5u);
  EXPECT_EQ(seeds(), (std::multiset<int>{2, 5, 7}));
  EXPECT_EQ(runner->runs(arm).size(), 2u);
  EXPECT_EQ(seeds(), (std::multiset<int>{1, 2, 5, 7}));
  EXPECT_EQ(runner->runs(arm, {7, 5}).size(), 2u);
  EXPECT_EQ(runner.steps.size(), 4u);
}

TEST(Arms, WarmUpForTheirShareOfTheUpdates) {
  SizeSettings settings = test::tiny_settings();
  settings.updates = 16, settings.warmup = 4;
  test::TinyRunner runner(settings);
  Arm arm = runner->base("base"), longer = arm, none = arm;
  arm.updates = 0.5;
  longer.updates = 0.5, longer.warmup = 3;
  none.updates = 0.001, none.warmup = 0;
  std::vector<double> losses;
  for (const Arm* one : {&arm, &longer, &none}) losses.push_back(runner->runs(*one, {1})[0].loss);
  const auto kept = runner.kept();
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[0]["is"]["updates"], 8);
  EXPECT_EQ(kept[0]["is"]["warmup"], 2);
  EXPECT_EQ(kept[1]["is"]["updates"], 8);
  EXPECT_EQ(kept[1]["is"]["warmup"], 6);
  EXPECT_EQ(kept[2]["is"]["updates"], 1) << "at least one";
  EXPECT_FALSE(kept[2]["is"].contains("warmup"));
  EXPECT_NE(losses[0], losses[1]);
}

Arm random_columns_arm(const ArmRunner& runner) {
  Arm arm = runner.base("random columns");
  arm.model.geometry.d_key = arm.model.geometry.d_value = 4;
  arm.columns = [](uint64_t draw) { return random_columns(4, 4, 16, draw); };
  return arm;
}

TEST(ConfigOf, DrawsColumnsForEachAttentionAndEachSeed) {
  test::TinyRunner runner;
  const Arm arm = random_columns_arm(*runner);
  std::set<HeadColumns> drawn;
  for (const uint64_t seed : {1, 2, 3}) {
    const TranslatorShape shape = config_of(arm, seed);
    EXPECT_EQ(config_of(arm, seed).own_heads, shape.own_heads) << "the same when asked again";
    std::vector<std::string> names;
    for (const OwnHeads& own : shape.own_heads) {
      names.push_back(own.attention);
      EXPECT_EQ(own.geometry.input.kind, HeadInput::Kind::kColumns);
      EXPECT_EQ(own.geometry.heads, 4);
      EXPECT_EQ(own.geometry.d_value, 4);
      EXPECT_TRUE(drawn.insert(own.geometry.input.columns).second) << seed << " " << own.attention;
    }
    EXPECT_EQ(names, (std::vector<std::string>{"encoder.0.self_attention", "decoder.0.self_attention",
                                               "decoder.0.cross_attention"}));
  }
  EXPECT_TRUE(config_of(runner->base("base"), 1).own_heads.empty());
}

TEST(ConfigOf, IsPartOfWhatARunIs) {
  test::TinyRunner runner;
  const Arm arm = random_columns_arm(*runner);
  Arm other = arm;
  other.columns = [](uint64_t draw) { return random_columns(4, 4, 16, draw + 500); };
  const double loss = runner->runs(arm, {1})[0].loss;
  EXPECT_NE(runner->runs(other, {1})[0].loss, loss);
  Arm renamed = arm;
  renamed.name = "another name";
  EXPECT_EQ(runner->runs(renamed, {1})[0].loss, loss) << "a name is no part of what a run is";
  EXPECT_EQ(runner.steps.size(), 2u);
  const auto kept = runner.kept();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_NE(kept[0]["is"]["model"], kept[1]["is"]["model"]);
  EXPECT_EQ(runner->trained(arm, 1)->parameter_count(), kept[0]["parameters"]);
}

TEST(Arms, SayWhenHeadsThatStartEqualPart) {
  using enum HeadInitialisation;
  test::TinyRunner runner;
  const auto parted = [&](HeadInitialisation initialisation, float weights_dropout) {
    Arm arm = runner->base("base");
    arm.model.geometry.initialisation = initialisation;
    arm.model.dropout.weights = weights_dropout;
    return runner->runs(arm, {1})[0].parted;
  };
  EXPECT_EQ(parted(kXavierPacked, 0), 0) << "these never were equal";
  EXPECT_EQ(parted(kEqualWithNoise, 0), 0) << "nor these";
  EXPECT_EQ(parted(kEqual, 0), 0) << "these stay equal";
  EXPECT_EQ(parted(kEqual, 0.3f), 1) << "each head has dropout of its own";
  EXPECT_EQ(parted(kEqualInput, 0), 1) << "each head's gradient comes through its own W_i^O";
}

TEST(Arms, SayWhenHeadsThatStartNearlyEqualAreApart) {
  test::TinyRunner runner;
  const auto apart = [&](double noise) {
    Arm arm = runner->base("nearly equal");
    arm.model.geometry.initialisation = HeadInitialisation::kEqual;
    arm.head_noise = noise;
    return runner->runs(arm, {1})[0];
  };
  const ArmRun near = apart(1e-6), far = apart(0.5);
  EXPECT_EQ(near.apart, 0) << "eight updates are too few";
  EXPECT_GT(near.curve.front().heads.distance.value(), 0);
  EXPECT_LT(near.curve.front().heads.distance.value(), 1e-5);
  EXPECT_EQ(far.apart, 1) << "apart from the start";
  EXPECT_EQ(runner.kept()[0]["is"]["head_noise"], 1e-6) << "another noise is another run";
}

TEST(Arms, ALossThatIsNoNumberEndsTheRunAndIsKept) {
  SizeSettings settings = test::tiny_settings();
  settings.learning_rate = 9e29f;
  test::TinyRunner tiny(settings);
  const Arm arm = tiny->base("too quick");
  try {
    tiny->runs(arm);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("arm too quick, seed 1: the loss of update"));
  }
  EXPECT_THROW(tiny->trained(arm, 2), Error);
  const auto kept = tiny.kept();
  ASSERT_EQ(kept.size(), 2u) << "so it is not trained again";
  EXPECT_GT(kept[0]["diverged"], 0);
}

TEST(Arms, RealTextNeedsItsFolder) {
  EXPECT_THROW(ArmRunner({.size = StudySize::kPaper}), UsageError);
}

}  // namespace
}  // namespace mh

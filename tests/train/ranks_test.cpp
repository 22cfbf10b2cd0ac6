// Several ranks, as threads, learn what one process does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "tests/support/delayed_group.h"
#include "tests/support/thread_group.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

using testing::HasSubstr;

struct Learned {
  std::vector<float> parameters;
  UpdateReport last;
  std::vector<std::vector<float>> sums;
};

// `updates` updates on so many ranks, which must all end with the same bits.
Learned learned(int ranks, int updates, const SmallOptions& given, int pairs = 37) {
  ThreadGroup threads(ranks);
  std::vector<Learned> found(static_cast<size_t>(ranks));
  threads.run([&](ProcessGroup& group) {
    EncoderDecoder model(small_shape().config());
    if (group.rank() == 0) model.initialise(3);
    const TrainingCorpus corpus = small_corpus(pairs);
    SmallOptions options = given;
    options.trainer.group = &group;
    SmallTraining training(model, corpus, options);
    training.trainer.start_as_first_rank();
    Learned& mine = found[static_cast<size_t>(group.rank())];
    for (int i = 0; i < updates; ++i) mine.last = training.trainer.update();
    mine.parameters = all_parameters(model);
  });
  for (const Learned& other : found) {
    EXPECT_EQ(other.parameters, found[0].parameters);
    EXPECT_EQ(other.last.gradient_norm, found[0].last.gradient_norm);
  }
  found[0].sums = threads.sums();
  return found[0];
}

// The gradient of the first update: that of each sentence alone, added in float64.
std::vector<double> reference_gradient(int pairs) {
  EncoderDecoder model(small_shape().config());
  model.initialise(3);
  const TrainingCorpus corpus = small_corpus(pairs);
  const SmallOptions options = small_options();
  TranslationObjective objective(model, corpus, options.translation);
  GradientBuffer gradients(named_parameters(objective));
  std::vector<double> sum(gradients.all().size());
  const std::vector<int64_t> batch = objective.plan(0).at(0);
  const float scale = 1.0f / static_cast<float>(objective.target_tokens(batch));
  for (const int64_t example : batch) {
    Tape tape(Tape::Mode::kRecord);
    Context context{.tape = tape, .dropout = DropoutKey{options.trainer.seed, 1}};
    objective.loss(context, std::vector<int64_t>{example}, scale);
    tape.backward();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(gradients.all()[i]);
    std::fill(gradients.all().begin(), gradients.all().end(), 0.0f);
  }
  return sum;
}

TEST(Ranks, TheirGradientIsTheSumOfEverySentencesInFloat64) {
  for (const int pairs : {37, 3}) {  // 3: fewer sentences than ranks
    const std::vector<double> expected = reference_gradient(pairs);
    double largest = 0;
    for (const double g : expected) largest = std::max(largest, std::abs(g));
    ASSERT_GT(largest, 0);
    for (const int ranks : {2, 3, 4}) {
      const std::vector<std::vector<float>> sums = learned(ranks, 1, small_options(), pairs).sums;
      const std::vector<float>& found = sums.back();  // after those that give the start to all
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], expected[i], 2e-6 * largest) << ranks << " ranks, number " << i;
    }
  }
}

TEST(Ranks, LearnWhatOneProcessLearns) {
  SmallOptions options = small_options();
  options.trainer.accumulate = 2;
  options.trainer.adam.epsilon = 1e-2;  // else the first steps are bare signs of what may be rounding
  const Learned expected = learned(1, 12, options);
  for (const int ranks : {2, 3, 4}) {
    const Learned found = learned(ranks, 12, options);
    EXPECT_EQ(found.last.target_tokens, expected.last.target_tokens);
    EXPECT_EQ(found.last.source_tokens, expected.last.source_tokens);
    EXPECT_EQ(found.last.sentences, expected.last.sentences);
    EXPECT_NEAR(found.last.smoothed_loss, expected.last.smoothed_loss, 1e-4 * expected.last.smoothed_loss);
    for (size_t i = 0; i < expected.parameters.size(); ++i)
      ASSERT_NEAR(found.parameters[i], expected.parameters[i], 2e-5) << i;
  }
}

TEST(Ranks, ReproducibleRunsHaveTheSameBitsOn1And2And4) {
  SmallOptions options = small_options();
  options.trainer.accumulate = 2;
  options.trainer.reproducible = true;
  const Learned expected = learned(1, 12, options);
  for (const int ranks : {2, 4}) {
    const Learned found = learned(ranks, 12, options);
    EXPECT_EQ(found.parameters, expected.parameters);
    EXPECT_EQ(found.last.smoothed_loss, expected.last.smoothed_loss);
    EXPECT_EQ(found.last.gradient_norm, expected.last.gradient_norm);
  }
  // The test can fail: sums in the order of the ranks round otherwise.
  options.trainer.reproducible = false;
  EXPECT_NE(learned(4, 12, options).parameters, expected.parameters);
  options.trainer.reproducible = true;
  try {
    learned(3, 1, options);
    FAIL() << "three ranks share four shards";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("start 1, 2 or 4 ranks, not 3"));
  }
}

TEST(Ranks, MomentsInSharesChangeNoBit) {
  const Learned expected = learned(3, 7, small_options());
  SmallOptions options = small_options();
  options.trainer.shard_moments = true;
  EXPECT_EQ(learned(3, 7, options).parameters, expected.parameters);
}

TEST(Ranks, EachKeepsItsShareOfTheMomentsAndRankZeroCollectsAll) {
  std::vector<int64_t> held(3);
  int64_t all = 0;
  std::vector<Tensor> whole(1);
  ThreadGroup(3).run([&](ProcessGroup& group) {
    EncoderDecoder model(small_shape().config());
    if (group.rank() == 0) model.initialise(3);
    const TrainingCorpus corpus = small_corpus();
    SmallOptions options = small_options();
    options.trainer.group = &group;
    options.trainer.shard_moments = true;
    SmallTraining training(model, corpus, options);
    training.trainer.start_as_first_rank();
    for (int i = 0; i < 3; ++i) training.trainer.update();
    Adam& adam = training.trainer.adam();
    const auto count = [&] {
      int64_t numbers = 0;
      for (size_t i = 0; i < adam.parameters().size(); ++i) numbers += adam.moments(i).first.size();
      return numbers;
    };
    held[static_cast<size_t>(group.rank())] = count();
    training.trainer.collect_moments();
    if (group.rank() != 0) return;
    all = count();
    for (size_t i = 0; i < adam.parameters().size(); ++i) {
      const Tensor& second = adam.moments(i).second;
      if (adam.parameters()[i].name == "logits_bias") continue;  // which no gradient reaches
      EXPECT_TRUE(std::any_of(second.data(), second.data() + second.size(), [](float x) { return x > 0; }))
          << adam.parameters()[i].name;
    }
    adam.hold_own();
    EXPECT_EQ(count(), held[0]);
  });
  EXPECT_EQ(held[0] + held[1] + held[2], all);
  for (const int64_t numbers : held) EXPECT_LT(numbers, all / 2);
}

TEST(Ranks, AParameterThatOneRankAloneReachedIsUpdatedOnAll) {
  // Three sentences on four ranks: the last rank has none, so it reaches nothing.
  const Learned one = learned(1, 1, small_options(), 3), four = learned(4, 1, small_options(), 3);
  EncoderDecoder model(small_shape().config());
  model.initialise(3);
  const std::vector<float> before = all_parameters(model);
  int changed_by_one = 0, changed_by_four = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    changed_by_one += static_cast<int>(one.parameters[i] != before[i]);
    changed_by_four += static_cast<int>(four.parameters[i] != before[i]);
  }
  EXPECT_GT(changed_by_one, static_cast<int>(before.size()) / 2);
  EXPECT_NEAR(changed_by_four, changed_by_one, 5);  // a tiny step may round to none
}

TEST(Ranks, ASlowNetworkChangesNoBitAndIsCountedAsWaiting) {
  const Learned expected = learned(2, 3, small_options());
  std::vector<double> waited(2);
  std::vector<std::vector<float>> found(2);
  constexpr double kSecondsOfFloat = 2e-6;
  size_t floats = 0;
  ThreadGroup(2).run([&](ProcessGroup& group) {
    DelayedGroup slow(group, {.of_call = std::chrono::milliseconds(3), .seconds_of_float = kSecondsOfFloat});
    EncoderDecoder model(small_shape().config());
    if (group.rank() == 0) model.initialise(3);
    const TrainingCorpus corpus = small_corpus();
    SmallOptions options = small_options();
    options.trainer.group = &slow;
    SmallTraining training(model, corpus, options);
    training.trainer.start_as_first_rank();
    for (int i = 0; i < 3; ++i)
      waited[static_cast<size_t>(group.rank())] += training.trainer.update().ranks.waiting_seconds;
    found[static_cast<size_t>(group.rank())] = all_parameters(model);
    if (group.rank() == 0) floats = static_cast<size_t>(training.trainer.gradients().views().back().begin);
  });
  for (const auto& parameters : found) EXPECT_TRUE(parameters == expected.parameters);
  const double least = 3 * (2 * 3e-3 + kSecondsOfFloat * static_cast<double>(floats));
  for (const double seconds : waited) EXPECT_GT(seconds, least);
}

}  // namespace
}  // namespace mh

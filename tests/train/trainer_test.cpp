#include "multihead/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "multihead/base/thread_pool.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

TEST(TrainingCorpus, GathersPairsUnderTheirLines) {
  TrainingCorpus corpus;
  corpus.tokens.source = {{5, 0}, {6, 7, 8, 0}};
  corpus.tokens.target = {{9, 0}, {10, 11, 0}};
  corpus.lines = {3, 17};
  Batch source;
  TeacherForced target;
  const std::vector<int64_t> pairs = {1, 0};
  for (int again = 0; again < 2; ++again) {
    gather(corpus, pairs, 2, source, target);
    EXPECT_EQ(source.ids, (std::vector<int32_t>{6, 7, 8, 0, 5, 0}));
    EXPECT_EQ(target.input.ids, (std::vector<int32_t>{2, 10, 11, 2, 9}));
    EXPECT_EQ(target.next, (std::vector<int32_t>{10, 11, 0, 9, 0}));
    EXPECT_EQ(source.sentences, (std::vector<int64_t>{17, 3}));
    EXPECT_EQ(target.input.sentences, source.sentences);
    EXPECT_EQ(source.ragged.length(0), 4);
    EXPECT_EQ(target.input.ragged.length(1), 2);
  }
  EXPECT_EQ(target_tokens(corpus, pairs), 5);
}

TEST(TrainingCorpus, FingerprintSeesEveryChange) {
  const TrainingCorpus corpus = small_corpus();
  const std::string print = fingerprint(corpus);
  EXPECT_EQ(print.size(), 16u);
  EXPECT_EQ(fingerprint(small_corpus()), print);
  TrainingCorpus other = corpus;
  other.tokens.target[36][0] += 1;
  EXPECT_NE(fingerprint(other), print);
  other = corpus;
  std::swap(other.tokens.source[3], other.tokens.target[3]);
  EXPECT_NE(fingerprint(other), print);
  other = corpus;
  other.lines[0] = 2;
  EXPECT_NE(fingerprint(other), print);
}

TEST(Trainer, Learns) {
  EncoderDecoder model(small_shape().config());
  model.initialise(1);
  const TrainingCorpus corpus = small_corpus();
  SmallTraining training(model, corpus);
  Trainer& trainer = training.trainer;
  const auto mean_loss = [&](int updates) {
    double sum = 0;
    for (int i = 0; i < updates; ++i) {
      const UpdateReport report = trainer.update();
      EXPECT_TRUE(report.finite);
      EXPECT_GT(report.gradient_norm, 0);
      sum += report.negative_log_likelihood / static_cast<double>(report.target_tokens);
    }
    return sum / updates;
  };
  const double first = mean_loss(5);
  EXPECT_NEAR(first, std::log(23.0), 1.2);
  mean_loss(150);
  EXPECT_LT(mean_loss(5), 0.7 * first);
  EXPECT_EQ(trainer.state().update, 160);
}

// However the sentences of an update lie in batches, the update is the same one: the loss is the mean over
// all its tokens, and dropout belongs to sentences.
TEST(Trainer, AccumulationIsOneLargeBatch) {
  const TrainingCorpus corpus = small_corpus();
  std::vector<std::vector<float>> results;
  std::vector<double> norms;
  for (const bool accumulate : {false, true}) {
    EncoderDecoder model(small_shape().config());
    model.initialise(3);
    SmallOptions options = small_options();
    options.translation.batches.max_tokens = accumulate ? 40 : 100000;
    options.trainer.accumulate = accumulate ? 1000 : 1;
    options.trainer.adam.epsilon =
        1e-2;  // else Adam's first step is the bare sign of gradients that are 0 but for rounding
    SmallTraining training(model, corpus, options);
    Trainer& trainer = training.trainer;
    EXPECT_EQ(trainer.batches_in_epoch() > 3, accumulate);
    const UpdateReport report = trainer.update();
    EXPECT_EQ(report.sentences, 37);
    EXPECT_EQ(trainer.state().epoch, 1);
    norms.push_back(report.gradient_norm);
    results.push_back(all_parameters(model));
  }
  EXPECT_NEAR(norms[0], norms[1], 1e-5 * norms[0]);
  for (size_t i = 0; i < results[0].size(); ++i) ASSERT_NEAR(results[0][i], results[1][i], 1e-6) << i;
}

TEST(Trainer, SameBitsForAnyThreadCount) {
  const int before = thread_count();
  const TrainingCorpus corpus = small_corpus();
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    EncoderDecoder model(small_shape().config());
    model.initialise(3);
    SmallTraining training(model, corpus);
    Trainer& trainer = training.trainer;
    for (int i = 0; i < 7; ++i) trainer.update();
    results.push_back(all_parameters(model));
  }
  set_thread_count(before);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Trainer, ReportsWhatIsNotANumberAndLeavesTheModelAlone) {
  EncoderDecoder model(small_shape().config());
  model.initialise(1);
  const TrainingCorpus corpus = small_corpus();
  SmallTraining training(model, corpus);
  Trainer& trainer = training.trainer;
  trainer.update();
  bool first = true;
  model.visit([&](const std::string&, Parameter& parameter) {
    if (first) {
      parameter.value.fill(std::numeric_limits<float>::quiet_NaN());
      parameter.changed();
    }
    first = false;
  });
  const std::vector<int64_t> lines = trainer.lines_of_next_update();
  EXPECT_FALSE(trainer.update().finite);
  EXPECT_EQ(trainer.state().update, 1);
  EXPECT_EQ(trainer.adam().updates(), 1);
  EXPECT_EQ(trainer.lines_of_next_update(), lines);
  for (const int64_t line : lines) EXPECT_EQ(line % 2, 1);
}

}  // namespace
}  // namespace mh

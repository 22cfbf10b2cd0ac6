// Objectives, and the buffer of their gradients.
#include "multihead/train/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "multihead/base/error.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

using testing::HasSubstr;

TEST(Trainer, KeepsAllGradientsInItsBuffer) {
  EncoderDecoder model(small_shape().config());
  model.initialise(3);
  const TrainingCorpus corpus = small_corpus();
  {
    SmallTraining training(model, corpus);
    training.trainer.update();
    const GradientBuffer& gradients = training.trainer.gradients();
    size_t i = 0;
    model.visit([&](const std::string& name, Parameter& parameter) {
      EXPECT_EQ(gradients.views()[i].name, name);
      EXPECT_EQ(gradients.reached(i), name != "logits_bias");
      EXPECT_EQ(parameter.gradient_sum().data, gradients.views()[i].values.data);
      ++i;
    });
  }
  model.visit([](const std::string& name, Parameter& parameter) {
    EXPECT_FALSE(parameter.gradient.exists()) << name;
  });
}

TEST(TranslationObjective, RefusesACorpusThatTheModelCannotRead) {
  EncoderDecoder model(small_shape().config());
  const auto message = [&](const TrainingCorpus& corpus) -> std::string {
    try {
      const TranslationObjective objective(model, corpus, {});
    } catch (const UsageError& error) {
      return error.what();
    } catch (const ShapeError& error) {
      return std::string("ShapeError ") + error.what();
    }
    return "";
  };
  EXPECT_EQ(message(small_corpus()), "");
  EXPECT_THAT(message({}), HasSubstr("at least one pair"));
  TrainingCorpus corpus = small_corpus();
  corpus.tokens.target[3][0] = 23;
  EXPECT_THAT(message(corpus), HasSubstr("target line 7: expected token ids from 0 to 22, got 23"));
  corpus.tokens.source[2].clear();
  EXPECT_THAT(message(corpus), HasSubstr("source line 5: no tokens"));
  corpus.tokens.source[1].assign(static_cast<size_t>(small_shape().max_positions) + 1, 4);
  EXPECT_THAT(message(corpus), HasSubstr("ShapeError source line 3: expected at most"));
  corpus.lines.pop_back();
  EXPECT_THAT(message(corpus), HasSubstr("as many targets and line numbers as sources, got 37, 36 and 37"));
}

TEST(Trainer, RefusesWhatAUserCanGetWrong) {
  EncoderDecoder model(small_shape().config());
  model.initialise(3);
  const TrainingCorpus corpus = small_corpus();
  TranslationObjective objective(model, corpus, {});
  EXPECT_THROW(Trainer(objective, {.accumulate = 0}), UsageError);
  Trainer trainer(objective, {});
  trainer.state().batch = trainer.batches_in_epoch();
  EXPECT_THROW(trainer.update(), UsageError);
  EXPECT_THROW(trainer.lines_of_next_update(), UsageError);
}

}  // namespace
}  // namespace mh

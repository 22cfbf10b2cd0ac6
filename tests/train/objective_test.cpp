// What is learned from what, and the place where processes sum what they learned.
#include "multihead/train/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>

#include "multihead/base/error.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

using testing::HasSubstr;

// Another objective with one thing changed.
class Changed : public Objective {
 public:
  explicit Changed(Objective& inner) : inner_(inner) {}
  void visit(const ParameterVisitor& visitor) override { inner_.visit(visitor); }
  std::vector<std::vector<int64_t>> plan(uint64_t epoch) const override { return inner_.plan(epoch); }
  int64_t target_tokens(std::span<const int64_t> batch) const override { return inner_.target_tokens(batch); }
  std::vector<int64_t> lines(std::span<const int64_t> batch) const override { return inner_.lines(batch); }
  LossSums loss(Context& context, std::span<const int64_t> batch, float scale) override {
    return inner_.loss(context, batch, scale);
  }
  void save_model(const std::filesystem::path& folder, const SaveOptions& options) const override {
    inner_.save_model(folder, options);
  }

 protected:
  Objective& inner_;
};

class Louder : public Changed {
 public:
  using Changed::Changed;
  LossSums loss(Context& context, std::span<const int64_t> batch, float scale) override {
    return inner_.loss(context, batch, 2 * scale);
  }
};

// One process of two: every second batch.
class Half : public Changed {
 public:
  Half(Objective& inner, size_t rank) : Changed(inner), rank_(rank) {}
  std::vector<std::vector<int64_t>> plan(uint64_t epoch) const override {
    const auto all = inner_.plan(epoch);
    std::vector<std::vector<int64_t>> mine;
    for (size_t b = 0; b + 1 < all.size(); b += 2) mine.push_back(all[b + rank_]);
    return mine;
  }

 private:
  size_t rank_;
};

struct Outcome {
  std::vector<UpdateReport> reports;
  std::vector<float> parameters;
};

// Three updates of an objective made of the usual one.
Outcome outcome(const std::function<std::unique_ptr<Objective>(Objective&)>& change,
                const TrainerOptions& options) {
  EncoderDecoder model(small_config());
  model.initialise(3);
  const TrainingCorpus corpus = small_corpus();
  TranslationObjective usual(model, corpus, small_options().translation);
  const std::unique_ptr<Objective> changed = change(usual);
  Trainer trainer(*changed, options);
  Outcome found;
  for (int i = 0; i < 3; ++i) found.reports.push_back(trainer.update());
  found.parameters = all_parameters(model);
  return found;
}

template <class Form>
std::unique_ptr<Objective> changed_to(Objective& usual) {
  return std::make_unique<Form>(usual);
}

TEST(SumOverProcesses, AHookThatDoublesGradientsIsALossTwiceAsLoud) {
  TrainerOptions options = small_options().trainer;
  const Outcome plain = outcome(changed_to<Changed>, options), louder = outcome(changed_to<Louder>, options);
  int calls = 0;
  options.sum_over_processes = [&](GradientBuffer& gradients, UpdateReport& report) {
    ++calls;
    EXPECT_EQ(report.gradient_norm, 0);  // not known yet
    EXPECT_GT(report.target_tokens, 0);
    for (float& gradient : gradients.all()) gradient *= 2;
  };
  const Outcome doubled = outcome(changed_to<Changed>, options);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(doubled.parameters, louder.parameters);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(doubled.reports[i].gradient_norm, louder.reports[i].gradient_norm);
    EXPECT_TRUE(doubled.reports[i].finite);
  }
  EXPECT_EQ(doubled.reports[0].gradient_norm, 2 * plain.reports[0].gradient_norm);
  options.sum_over_processes = [](GradientBuffer&, UpdateReport&) {};
  EXPECT_EQ(outcome(changed_to<Changed>, options).parameters, plain.parameters);
}

TEST(SumOverProcesses, WhatItLeavesIsWhatTheReportAndTheClippingSee) {
  TrainerOptions options = small_options().trainer;
  options.sum_over_processes = [](GradientBuffer& gradients, UpdateReport& report) {
    gradients.all()[0] = std::numeric_limits<float>::quiet_NaN();
    report.sentences = 1000;
  };
  const Outcome found = outcome(changed_to<Changed>, options);
  EXPECT_FALSE(found.reports[0].finite);
  EXPECT_EQ(found.reports[0].sentences, 1000);
}

// Two processes with every second batch learn what one does that accumulates both.
TEST(SumOverProcesses, TwoHalvesLearnWhatTheWholeDoes) {
  const TrainingCorpus corpus = small_corpus();
  SmallOptions options = small_options();
  options.trainer.adam.epsilon = 1e-2;  // else the first step is the bare sign of what may be rounding
  EncoderDecoder whole_model(small_config());
  whole_model.initialise(3);
  SmallOptions both = options;
  both.trainer.accumulate = 2;
  SmallTraining whole(whole_model, corpus, both);
  const UpdateReport expected = whole.trainer.update();

  std::vector<float> theirs;
  UpdateReport their_report;
  UpdateReport found;
  std::vector<float> learned;
  for (const size_t rank : {1, 0}) {
    EncoderDecoder model(small_config());
    model.initialise(3);
    TranslationObjective usual(model, corpus, options.translation);
    Half half(usual, rank);
    TrainerOptions own = options.trainer;
    own.sum_over_processes = [&](GradientBuffer& gradients, UpdateReport& report) {
      if (rank == 1) {
        theirs.assign(gradients.all().begin(), gradients.all().end());
        their_report = report;
        return;
      }
      const auto mine = static_cast<float>(report.target_tokens),
                 other = static_cast<float>(their_report.target_tokens);
      for (size_t i = 0; i < theirs.size(); ++i) {
        float& gradient = gradients.all()[i];
        gradient = (gradient * mine + theirs[i] * other) / (mine + other);
      }
      report += their_report;
    };
    found = Trainer(half, own).update();
    learned = all_parameters(model);
  }
  EXPECT_EQ(found.target_tokens, expected.target_tokens);
  EXPECT_EQ(found.source_tokens, expected.source_tokens);
  EXPECT_EQ(found.sentences, expected.sentences);
  EXPECT_NEAR(found.smoothed_loss, expected.smoothed_loss, 1e-5 * expected.smoothed_loss);
  EXPECT_NEAR(found.gradient_norm, expected.gradient_norm, 1e-5 * expected.gradient_norm);
  const std::vector<float> at_once = all_parameters(whole_model);
  for (size_t i = 0; i < at_once.size(); ++i) ASSERT_NEAR(learned[i], at_once[i], 1e-6) << i;
}

TEST(SumOverProcesses, AParameterThatOnlyOthersReachedIsUpdatedWhenMarked) {
  for (const bool mark : {false, true}) {
    EncoderDecoder model(small_config());
    model.initialise(3);
    const TrainingCorpus corpus = small_corpus();
    TranslationObjective objective(model, corpus, small_options().translation);
    TrainerOptions options = small_options().trainer;
    size_t bias = 0;
    options.sum_over_processes = [&](GradientBuffer& gradients, UpdateReport&) {
      const auto& views = gradients.views();
      while (views[bias].name != "logits_bias") ++bias;
      EXPECT_FALSE(gradients.reached(bias));
      EXPECT_EQ(std::count(views[bias].values.data, views[bias].values.data + 23, 0.0f), 23);
      views[bias].values(0, 5) = 1;
      if (mark) gradients.mark_reached(bias);
    };
    Trainer trainer(objective, options);
    trainer.update();
    const Parameter& parameter = *trainer.adam().parameters()[bias].parameter;
    EXPECT_EQ(parameter.value(0, 5) != 0, mark);
    EXPECT_EQ(parameter.version > 1, mark);
    EXPECT_EQ(parameter.value(0, 4), 0);
  }
}

TEST(Trainer, KeepsAllGradientsInItsBuffer) {
  EncoderDecoder model(small_config());
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
  EncoderDecoder model(small_config());
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
  corpus.tokens.source[1].assign(static_cast<size_t>(small_config().max_positions) + 1, 4);
  EXPECT_THAT(message(corpus), HasSubstr("ShapeError source line 3: expected at most"));
  corpus.lines.pop_back();
  EXPECT_THAT(message(corpus), HasSubstr("as many targets and line numbers as sources, got 37, 36 and 37"));
}

TEST(Trainer, RefusesWhatAUserCanGetWrong) {
  EncoderDecoder model(small_config());
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

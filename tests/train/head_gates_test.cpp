// Gates that learn to close heads: their distribution, their gradient, what is saved, and going on with the same bits.
#include "multihead/models/head_gates.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "multihead/heads/conversion/convert_model.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/hard_concrete.h"
#include "multihead/train/checkpoint_store.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

TEST(HardConcrete, HasTheSlopesAndProbabilitiesOfItsFormulas) {
  for (const double log_alpha : {-4.0, -1.3, 0.0, 0.7, 2.5}) {
    int open = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i)
      open += hard_concrete::sampled(log_alpha, (i + 0.5) / kDraws).value > 0 ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(open) / kDraws, hard_concrete::open(log_alpha).value, 1e-3);
    constexpr double kStep = 1e-6;
    const auto slope = [&](const auto& of) {
      return (of(log_alpha + kStep).value - of(log_alpha - kStep).value) / (2 * kStep);
    };
    EXPECT_NEAR(slope(hard_concrete::open), hard_concrete::open(log_alpha).slope, 1e-7);
    EXPECT_NEAR(slope(hard_concrete::expected), hard_concrete::expected(log_alpha).slope, 1e-7);
    for (const double u : {0.03, 0.4, 0.55, 0.98}) {
      const auto drawn = [u](double at) { return hard_concrete::sampled(at, u); };
      EXPECT_NEAR(slope(drawn), drawn(log_alpha).slope, 1e-7);
    }
  }
  // By hand: u = 1/2 is no noise, sigmoid(0) = 1/2, stretched 1/2 * 1.2 - 0.1.
  EXPECT_DOUBLE_EQ(hard_concrete::sampled(0, 0.5).value, 0.5);
  EXPECT_NEAR(hard_concrete::open(0).value, 1 / (1 + std::pow(1 / 11.0, 2.0 / 3)), 1e-12);
  EXPECT_EQ(hard_concrete::expected(HeadGates::kStart).value, 1);
  EXPECT_EQ(hard_concrete::expected(-2.5).value, 0);
}

struct GatedTraining {
  explicit GatedTraining(float price, uint64_t seed = 7, float dropout = 0.1f) {
    TranslatorShape shape = small_shape();
    shape.dropout = {.residual = dropout, .weights = dropout, .activation = dropout};
    model = std::make_unique<EncoderDecoder>(shape.config());
    model->initialise(3);
    SmallOptions options = small_options();
    options.translation.head_gates = price;
    options.trainer.seed = seed;
    training = std::make_unique<SmallTraining>(*model, corpus, options);
  }
  HeadGates& gates() const { return *training->objective.gates(); }
  void updates(int count) const {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(training->trainer.update().finite);
  }
  /// The model's parameters and those of the gates.
  std::vector<float> all() const {
    std::vector<float> numbers = all_parameters(*model);
    gates().visit([&](const std::string&, Parameter& p) {
      numbers.insert(numbers.end(), p.value.data(), p.value.data() + p.value.size());
    });
    return numbers;
  }

  TrainingCorpus corpus = small_corpus();
  std::unique_ptr<EncoderDecoder> model;
  std::unique_ptr<SmallTraining> training;
};

constexpr int64_t kHeads = 3 * (2 + 2);

TEST(HeadGates, BeginOpenAndStayOpenWithoutAPrice) {
  const GatedTraining run(0);
  EXPECT_EQ(run.gates().open().heads, kHeads);
  EXPECT_EQ(run.gates().open().open, kHeads);
  const std::vector<float> before = all_parameters(*run.model);
  {
    const FoldedGates folded(*run.model, run.gates());
    EXPECT_EQ(all_parameters(*run.model), before);
  }
  run.updates(60);
  EXPECT_EQ(run.gates().open().open, kHeads);
}

TEST(HeadGates, APriceClosesHeadsAndAHugeOneAll) {
  int64_t last = kHeads + 1;
  for (const float price : {0.0f, 0.05f, 100.0f}) {
    const GatedTraining run(price);
    run.updates(300);
    const HeadGates::Open found = run.gates().open();
    EXPECT_LT(found.open, last) << price;
    last = found.open;
  }
  EXPECT_EQ(last, 0);
}

// The loss of one batch with the noise of one update, by each gate.
TEST(HeadGates, GradientIsThatOfTheLossAndThePrice) {
  constexpr float kPrice = 0.3f;
  const GatedTraining run(kPrice, 7, 0);
  TranslationObjective& objective = run.training->objective;
  Random random(4);
  std::vector<Parameter*> parameters;
  run.gates().visit([&](const std::string&, Parameter& p) {
    parameters.push_back(&p);
    for (int64_t h = 0; h < p.value.cols(); ++h)
      p.value(0, h) = static_cast<float>(0.05 * random.normal() - 0.25);
  });
  const std::vector<int64_t> batch = objective.plan(0).front();
  const float scale = 1.0f / static_cast<float>(objective.target_tokens(batch));
  const auto loss = [&] {
    Tape tape(Tape::Mode::kRecord);
    Context context{.tape = tape, .dropout = DropoutKey{.seed = 5, .update = 9}};
    const double found = objective.loss(context, batch, scale).smoothed_loss * static_cast<double>(scale);
    return found + static_cast<double>(kPrice) * run.gates().open().expected;
  };
  std::vector<double> expected;
  for (Parameter* p : parameters) {
    for (int64_t h = 0; h < p->value.cols(); ++h) {
      const float at = p->value(0, h), step = 1e-3f;
      p->value(0, h) = at + step;
      const double above = loss();
      p->value(0, h) = at - step;
      const double below = loss();
      p->value(0, h) = at;
      expected.push_back((above - below) / (2 * static_cast<double>(step)));
    }
  }
  for (Parameter* p : parameters) {
    const MatrixView sum = p->gradient_sum();
    std::fill_n(sum.data, sum.size(), 0.0f);
  }
  Tape tape(Tape::Mode::kRecord);
  Context context{.tape = tape, .dropout = DropoutKey{.seed = 5, .update = 9}};
  objective.loss(context, batch, scale);
  tape.backward();
  size_t i = 0;
  int of_loss = 0;
  for (Parameter* p : parameters) {
    for (int64_t h = 0; h < p->value.cols(); ++h, ++i) {
      const double found = static_cast<double>(p->gradient.view()(0, h));
      EXPECT_NEAR(found, expected[i], 2e-3 + 0.01 * std::abs(expected[i])) << i;
      const double price = static_cast<double>(kPrice) * HeadGates::kSpeed *
                           hard_concrete::open(HeadGates::kStart + HeadGates::kSpeed * p->value(0, h)).slope;
      of_loss += std::abs(found - price) > 0.01 ? 1 : 0;
    }
  }
  EXPECT_GE(of_loss, 3) << "the loss itself must reach gates; those at 0 or 1 have no slope";
}

TEST(HeadGates, DoNotDependOnHowSentencesLieInBatches) {
  const TrainingCorpus corpus = small_corpus();
  std::vector<UpdateReport> reports;
  std::vector<std::vector<float>> learned;
  for (const bool accumulate : {false, true}) {
    EncoderDecoder model(small_shape().config());
    model.initialise(3);
    SmallOptions options = small_options();
    options.translation.batches.max_tokens = accumulate ? 40 : 100000;
    options.trainer.accumulate = accumulate ? 1000 : 1;
    options.translation.head_gates = 0.5f;
    SmallTraining training(model, corpus, options);
    reports.push_back(training.trainer.update());
  }
  EXPECT_NEAR(reports[0].smoothed_loss, reports[1].smoothed_loss, 1e-5 * reports[0].smoothed_loss);
  EXPECT_NEAR(reports[0].gradient_norm, reports[1].gradient_norm, 1e-5 * reports[0].gradient_norm);
}

TEST(HeadGates, FoldedAreTheGatesAndLeaveNothingBehind) {
  const GatedTraining run(0.05f);
  run.updates(120);
  SiteValues gated;
  int between = 0;
  for (const auto& [name, heads, place] : run.model->attentions()) {
    const std::vector<double> gates = run.gates().gates_of(name);
    for (int h = 0; h < heads; ++h) {
      const double gate = gates[static_cast<size_t>(h)];
      gated.set_gate(fmt::format("{}.{}", name, h), static_cast<float>(gate));
      between += gate > 0 && gate < 1 ? 1 : 0;
    }
  }
  EXPECT_GT(between, 0);
  EncoderDecoder other(run.model->config());
  copy_parameters(named_parameters(*run.model), named_parameters(other), "the same");
  const std::vector<float> before = run.all();
  {
    const FoldedGates folded(*run.model, run.gates());
    const auto sources = random_sentences(other.facts(), 23, 4, 5);
    auto targets = random_sentences(other.facts(), 23, 4, 6);
    const ModelDifference found = compare_models(other, *run.model, sources, targets, &gated);
    EXPECT_LT(found.of_outputs().largest, 1e-5 * found.of_outputs().magnitude);
    EXPECT_EQ(std::ssize(closed_heads(*run.model)), kHeads - run.gates().open().open);
  }
  EXPECT_EQ(run.all(), before);
}

TEST(HeadGates, GoOnFromACheckpointWithTheSameBits) {
  const test::ScratchFolder scratch;
  const GatedTraining whole(0.05f);
  whole.updates(40);

  const GatedTraining first(0.05f);
  first.updates(25);
  CheckpointStore store(scratch / "run");
  store.save(first.training->objective, first.training->trainer.adam(), first.training->trainer.state());
  const GatedTraining second(0.05f);
  store.restore(store.load(25), second.training->trainer);
  EXPECT_EQ(second.all(), first.all());
  second.updates(15);
  EXPECT_EQ(second.all(), whole.all());
  // What the folder holds is the model with its gates.
  const ModelFolder saved = store.load(25).folder;
  const FoldedGates folded(*first.model, first.gates());
  EXPECT_EQ(all_parameters(saved.translator()), all_parameters(*first.model));
}

}  // namespace
}  // namespace mh

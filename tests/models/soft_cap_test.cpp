// A causal decoder with capped scores and logits, as Gemma 2 has them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/thread_pool.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/next_words.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/stack_cache.h"
#include "tests/models/small_batch.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

/// Groups of heads; a layer that sees all before it and one that sees a window.
CausalConfig capped_config(std::optional<float> scores, std::optional<float> logits) {
  const HeadGeometry heads{.heads = 6, .d_key = 6, .d_value = 5, .key_heads = 2, .soft_cap = scores};
  const FeedForwardConfig feed_forward{.d_ff = 19, .activation = Activation::kGeluTanh, .gated = true};
  CausalConfig config;
  config.embedding = {.vocabulary = 37, .d_model = 12};
  config.max_positions = 41;
  config.positions = Positions::kRotary;
  config.stack = {.name = "decoder",
                  .d_model = 12,
                  .layers = {{.self_attention = heads, .feed_forward = feed_forward},
                             {.self_attention = heads,
                              .feed_forward = feed_forward,
                              .mask = StackMask::sliding_window(5)}},
                  .mask = StackMask::causal(),
                  .positions = Positions::kRotary,
                  .norm = {.kind = NormKind::kRms, .placement = NormPlacement::kPre}};
  config.logit_soft_cap = logits;
  return config;
}

/// Scores and logits are far beyond small caps.
std::unique_ptr<CausalModel> model_of(const CausalConfig& config) {
  auto model = std::make_unique<CausalModel>(config);
  Random random(9);
  model->visit([&](const std::string& name, Parameter& parameter) {
    if (name.find("norm") == std::string::npos) fill_normal(parameter, random, 0.8);
    parameter.changed();
  });
  return model;
}

std::vector<int32_t> following(const Batch& text) {
  std::vector<int32_t> next(text.ids.size());
  for (size_t i = 0; i < next.size(); ++i) next[i] = static_cast<int32_t>((7 * i + 3) % 37);
  return next;
}

std::vector<float> states_of(const CausalModel& model, const Batch& text) {
  Tape tape;
  Context context{.tape = tape};
  return test::copy_of(model.states(context, {}, text.view()).value());
}

TEST(SoftCap, OfScoresIsTheSameInCachedDecoding) {
  const auto owned = model_of(capped_config(1.5f, {}));
  const CausalModel& model = *owned;
  const Batch text(random_sources(8, {17, 11, 2}));
  const std::vector<float> whole = states_of(model, text);
  EXPECT_THAT(states_of(*model_of(capped_config({}, {})), text),
              testing::Not(Pointwise(FloatNear(0.1f), whole)));
  for (int32_t s = 0; s < 3; ++s) {
    Tape tape;
    Context context{.tape = tape};
    StackCache cache;
    model.start(context, {}, cache);
    const std::span<const int32_t> ids(text.ids.data() + text.ragged.begin(s),
                                       static_cast<size_t>(text.ragged.length(s)));
    for (size_t at = 0; at < ids.size();) {
      const size_t count = std::min(ids.size() - at, at == 0 ? size_t{3} : size_t{1});
      const Ragged rows = Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(count)});
      const ConstMatrixView found =
          model.extend(context, ids.subspan(at, count), {.rows = &rows}, cache).value();
      for (int64_t r = 0; r < found.rows; ++r) {
        for (int64_t c = 0; c < 12; ++c) {
          const int64_t row = text.ragged.begin(s) + static_cast<int64_t>(at) + r;
          ASSERT_NEAR(found(r, c), whole[static_cast<size_t>(row * 12 + c)], 2e-4) << s << " " << at;
        }
      }
      at += count;
    }
  }
}

TEST(SoftCap, FarAwayIsNone) {
  const Batch text(random_sources(8, {17, 11, 2}));
  EXPECT_THAT(states_of(*model_of(capped_config(1e6f, 1e6f)), text),
              Pointwise(FloatNear(1e-4f), states_of(*model_of(capped_config({}, {})), text)));
}

TEST(SoftCap, OfLogitsIsInProbabilitiesAndCandidates) {
  const auto without_cap = model_of(capped_config({}, {})), with_cap = model_of(capped_config({}, 2.5f));
  const CausalModel &plain = *without_cap, &model = *with_cap;
  const Batch text(random_sources(8, {17, 11, 2}));
  const std::vector<int32_t> next = following(text);
  Tape tape;
  const Context context{.tape = tape};
  Context own = context;
  const Var states = model.states(own, {}, text.view());
  std::vector<float> expected =
      test::copy_of(plain.next_words(context, states, text.view()).logits().value());
  EXPECT_GT(*std::max_element(expected.begin(), expected.end()), 5);
  for (float& logit : expected) logit = 2.5f * std::tanh(logit / 2.5f);
  SiteValues wanted;
  wanted.keep("decoder.logits");
  const Context asked{.tape = tape, .sites = &wanted};
  NextWords without = model.next_words(context, states, text.view()),
            with = model.next_words(asked, states, text.view());
  EXPECT_THAT(test::copy_of(without.logits().value()), Pointwise(FloatNear(1e-5f), expected));
  Tensor logits(states.rows(), 37);
  model.vocabulary().logits(states.value(), logits.view());
  EXPECT_THAT(test::copy_of(std::as_const(logits).view()), Pointwise(FloatNear(1e-5f), expected));
  VocabularyScratch scratch;
  for (NextWords* words : {&without, &with}) {
    const std::vector<float> found = words->log_probabilities(next, scratch);
    std::vector<Candidate> best(next.size() * 3);
    words->best({.candidates = 3}, best, scratch);
    for (size_t i = 0; i < next.size(); ++i) {
      const std::span<const float> row(expected.data() + 37 * i, 37);
      EXPECT_NEAR(found[i], log_probability(row, next[i]), 1e-5);
      for (size_t n = 0; n < 3; ++n)
        EXPECT_NEAR(best[3 * i + n].log_probability, log_probability(row, best[3 * i + n].token), 1e-5);
    }
  }
  EXPECT_THAT(test::copy_of(wanted.value("decoder.logits").view()), Pointwise(FloatNear(1e-5f), expected));
}

/// Loss and all gradients.
std::vector<float> trained(CausalModel& model, Sites* sites) {
  const Batch text(random_sources(8, {17, 11, 2}));
  VocabularyScratch scratch;
  Tape tape(Tape::Mode::kRecord);
  Context context{.tape = tape, .sites = sites};
  model.visit([](const std::string&, Parameter& parameter) { parameter.gradient.forget(); });
  const Loss loss = model.loss(context, {}, text.view(), following(text),
                               {.label_smoothing = 0.13f, .scale = 0.03f}, scratch);
  tape.backward(loss.loss);
  std::vector<float> numbers{loss.loss.value()(0, 0)};
  model.visit([&](const std::string&, Parameter& parameter) {
    const std::vector<float> gradient = test::copy_of(parameter.gradient_sum());
    numbers.insert(numbers.end(), gradient.begin(), gradient.end());
  });
  return numbers;
}

// The composed path of attention and the matrix of logits have gradients of their own.
TEST(SoftCap, HasTheSameGradientsWithoutTheFusedKernels) {
  const auto model = model_of(capped_config(1.5f, 2.5f));
  SiteValues watched;
  watched.watch("decoder.logits");
  for (int h = 0; h < 6; ++h) watched.watch("decoder.1.self_attention.scores." + std::to_string(h));
  EXPECT_THAT(trained(*model, &watched), Pointwise(FloatNear(2e-4f), trained(*model, nullptr)));
}

TEST(SoftCap, GivesTheSameBitsOnAnyNumberOfThreads) {
  const auto model = model_of(capped_config(1.5f, 2.5f));
  const int before = thread_count();
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    const std::vector<float> found = trained(*model, nullptr);
    if (first.empty()) first = found;
    EXPECT_EQ(first, found) << threads;
  }
  set_thread_count(before);
}

// Moves all parameters against their gradients.
TEST(SoftCap, HasGradientsThatAreDifferences) {
  const auto model = model_of(capped_config(1.5f, 2.5f));
  const std::vector<float> found = trained(*model, nullptr);
  const double squares = std::accumulate(found.begin() + 1, found.end(), 0.0,
                                         [](double sum, float g) { return sum + double{g} * double{g}; });
  const auto loss_at = [&](float step) {
    const auto moved = model_of(capped_config(1.5f, 2.5f));
    size_t at = 1;
    moved->visit([&](const std::string&, Parameter& parameter) {
      const MatrixView view = parameter.value.view();
      for (int64_t i = 0; i < view.size(); ++i) view.data[i] += step * found[at++];
      parameter.changed();
    });
    return double{trained(*moved, nullptr)[0]};
  };
  const float step = static_cast<float>(0.003 / std::sqrt(squares));
  const double difference = (loss_at(step) - loss_at(-step)) / (2 * double{step});
  EXPECT_NEAR(difference / squares, 1, 0.01);
}

TEST(SoftCap, OfLogitsIsPositive) {
  EXPECT_THAT(
      problems_of(capped_config({}, -30.0f)),
      ElementsAre("logit_soft_cap is -30; expected a positive number, for example 30, or leave it unset"));
}

}  // namespace
}  // namespace mh

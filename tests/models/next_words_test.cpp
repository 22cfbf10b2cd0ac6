// The words that states predict are the same with and without a matrix of logits, which somebody may replace.
#include "multihead/models/next_words.h"

#include <gmock/gmock.h>

#include <cmath>

#include "multihead/base/error.h"
#include "multihead/heads/sites/site_values.h"
#include "tests/models/small_batch.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

class NextWordsTest : public testing::Test {
 protected:
  NextWordsTest() {
    model.initialise(7);
    sharpen(model, 1.7f);
    add_to_logit(model, 11, 1);
    wanted.keep("decoder.logits");
  }

  Var states(const Context& context) {
    Context own = context;
    return model.states(own, source.view(), target.view());
  }

  EncoderDecoder model{small_shape().config()};
  const Batch source{random_sources(3, {5, 2, 7})}, target{random_sources(4, {3, 4, 2})};
  const std::vector<int32_t> following{5, 0, 36, 7, 7, 11, 2, 19, 23};
  SiteValues wanted;
  Tape tape;
  VocabularyScratch scratch;
};

TEST_F(NextWordsTest, AreTheSameFromLogits) {
  const Context plain{.tape = tape}, asked{.tape = tape, .sites = &wanted};
  const Var found = states(plain);
  NextWords without = model.next_words(plain, found, target.view()),
            with = model.next_words(asked, found, target.view());
  const std::vector<int32_t> suppressed{11, 4}, rows{8, 0, 3, 3}, targets{2, 30, 11, 0};
  for (const int k : {1, 3, 35}) {
    std::vector<Candidate> expected(static_cast<size_t>(9 * k)), best = expected;
    without.best({.candidates = k, .suppressed = suppressed}, expected, scratch);
    with.best({.candidates = k, .suppressed = suppressed}, best, scratch);
    for (size_t i = 0; i < best.size(); ++i) {
      EXPECT_EQ(best[i].token, expected[i].token) << i;
      EXPECT_NEAR(best[i].log_probability, expected[i].log_probability, 1e-5) << i;
    }
  }
  const auto near = [](const std::vector<float>& numbers) {
    return testing::Pointwise(testing::FloatNear(1e-5f), numbers);
  };
  EXPECT_THAT(with.log_probabilities(following, scratch),
              near(without.log_probabilities(following, scratch)));
  EXPECT_THAT(with.log_probabilities(rows, targets, scratch),
              near(without.log_probabilities(rows, targets, scratch)));
  EXPECT_EQ(test::copy_of(with.logits().value()), test::copy_of(without.logits().value()));
  EXPECT_EQ(test::copy_of(wanted.value("decoder.logits").view()), test::copy_of(without.logits().value()));
}

TEST_F(NextWordsTest, GiveTheSmallerOfTokensThatAreEquallyProbable) {
  SiteValues put;
  put.replace({.site = "decoder.logits", .numbers = Tensor(1, 37)});
  const Context asked{.tape = tape, .sites = &put};
  std::vector<Candidate> best(9 * 2);
  const std::vector<int32_t> suppressed{0};
  model.next_words(asked, states(asked), target.view())
      .best({.candidates = 2, .suppressed = suppressed}, best, scratch);
  for (size_t i = 0; i < best.size(); ++i) {
    EXPECT_EQ(best[i].token, 1 + static_cast<int32_t>(i % 2));
    EXPECT_NEAR(best[i].log_probability, -std::log(37.0), 1e-6);
  }
  EXPECT_THROW(model.next_words(asked, states(asked), target.view()).best({.candidates = 0}, best, scratch),
               UsageError);
}

// Losses, their gradients of the states, and those of all parameters.
TEST_F(NextWordsTest, HaveTheSameLossFromLogits) {
  const LossOptions options{.label_smoothing = 0.13f, .scale = 0.7f};
  const auto trained = [&](Sites* sites) {
    Tape recording(Tape::Mode::kRecord);
    Context context{.tape = recording, .sites = sites};
    model.visit([](const std::string&, Parameter& parameter) { parameter.gradient.forget(); });
    const Loss loss = model.loss(context, source.view(), target.view(), following, options, scratch);
    recording.backward(loss.loss);
    std::vector<float> numbers{loss.loss.value()(0, 0), static_cast<float>(loss.negative_log_likelihood),
                               static_cast<float>(loss.smoothed)};
    model.visit([&](const std::string&, Parameter& parameter) {
      const std::vector<float> gradient = test::copy_of(parameter.gradient_sum());
      numbers.insert(numbers.end(), gradient.begin(), gradient.end());
    });
    return numbers;
  };
  SiteValues watched;
  watched.watch("decoder.logits");
  EXPECT_THAT(trained(&watched), testing::Pointwise(testing::FloatNear(2e-4f), trained(nullptr)));
}

// d loss / d logit_iw = scale * (p_iw - e / V - (1 - e) [w = target_i])
TEST_F(NextWordsTest, HaveTheGradientOfTheLossAtLogits) {
  SiteValues watched;
  watched.watch("decoder.logits");
  watched.keep("decoder.logits");
  Tape recording(Tape::Mode::kRecordValues);
  Context context{.tape = recording, .sites = &watched};
  const Loss loss = model.loss(context, source.view(), target.view(), following,
                               {.label_smoothing = 0.1f, .scale = 0.5f}, scratch);
  recording.backward(loss.loss);
  const Tensor& logits = watched.value("decoder.logits");
  const ConstMatrixView gradient = watched.gradient("decoder.logits");
  for (int64_t i = 0; i < logits.rows(); ++i) {
    const std::span<const float> row(logits.view().row(i), 37);
    for (int32_t w = 0; w < 37; ++w) {
      const double p = std::exp(static_cast<double>(log_probability(row, w)));
      const double target_share = w == following[static_cast<size_t>(i)] ? 0.9 : 0;
      EXPECT_NEAR(gradient(i, w), 0.5 * (p - 0.1 / 37 - target_share), 1e-6) << i << " " << w;
    }
  }
}

TEST_F(NextWordsTest, AreRefusedWhereTheyAreNotFinite) {
  const Context asked{.tape = tape, .sites = &wanted};
  const Var found = states(asked);
  add_to_logit(model, 5, 3.4e38f);
  add_to_logit(model, 5, 3.4e38f);
  std::vector<Candidate> best(9);
  EXPECT_THAT([&] { model.next_words(asked, found, target.view()).best({}, best, scratch); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("logits are not finite numbers")));
}

}  // namespace
}  // namespace mh

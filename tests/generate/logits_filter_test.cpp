// Filters against the processors of transformers' generate(), and draws against their probabilities.
#include "multihead/generate/logits_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "tests/generate/generate_golden.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::vector<float> filtered(std::vector<float> logits, const LogitsFilterOptions& options,
                            const std::vector<int32_t>& tokens = {}) {
  for (const LogitsFilter& filter : logits_filters(options)) filter(tokens, logits);
  return logits;
}

TEST(LogitsFilters, AreThoseOfTransformersInItsOrder) {
  const auto& golden = test::generate_golden()["filters"];
  ASSERT_GT(golden["made"].size(), 15u);
  for (const auto& [name, made] : golden["made"].items()) {
    SCOPED_TRACE(name);
    const auto& o = made["options"];
    const LogitsFilterOptions options{.repetition_penalty = o.value("repetition_penalty", 1.0),
                                      .temperature = o.value("temperature", 1.0),
                                      .top_k = o.value("top_k", 0),
                                      .top_p = o.value("top_p", 1.0),
                                      .min_p = o.value("min_p", 0.0)};
    for (size_t row = 0; row < golden["rows"].size(); ++row) {
      const auto found = filtered(golden["rows"][row], options, golden["before"][row]);
      const auto& expected = made["logits"][row];
      ASSERT_EQ(found.size(), expected.size());
      for (size_t w = 0; w < found.size(); ++w) {
        if (expected[w].is_null()) {
          EXPECT_EQ(found[w], kNever) << row << " " << w;
        } else {
          EXPECT_NEAR(found[w], expected[w].get<float>(), 1e-5) << row << " " << w;
        }
      }
    }
  }
  // The order of logits_filter.h; `suppress` commutes with the penalty, since infinity stays infinity.
  EXPECT_THAT(
      test::generate_golden()["order"],
      ElementsAre("RepetitionPenaltyLogitsProcessor", "SuppressTokensLogitsProcessor",
                  "TemperatureLogitsWarper", "TopKLogitsWarper", "TopPLogitsWarper", "MinPLogitsWarper"));
}

TEST(LogitsFilters, AtTheEdgesOneTokenStaysAndAllStay) {
  const std::vector<float> logits{1, 4, 4, -2, 3};
  EXPECT_THAT(filtered(logits, {.top_p = 0}), ElementsAre(kNever, 4, kNever, kNever, kNever));
  EXPECT_EQ(filtered(logits, {.top_p = 1}), logits);
  EXPECT_EQ(filtered(logits, {.top_p = std::nextafter(1.0, 0.0)}), logits);
  // Ties: the smaller token is taken first, and alone where it suffices.
  EXPECT_THAT(filtered({0, 0, 0, 0}, {.top_p = 0.5}), ElementsAre(0, 0, kNever, kNever));
  EXPECT_THAT(filtered({0, 0, 0, 0}, {.top_p = 0.51}), ElementsAre(0, 0, 0, kNever));
  EXPECT_THAT(filtered(logits, {.top_k = 1}), ElementsAre(kNever, 4, 4, kNever, kNever));
  EXPECT_THAT(filtered(logits, {.min_p = 1}), ElementsAre(kNever, 4, 4, kNever, kNever));
  EXPECT_THAT(filtered(logits, {.suppressed = {1, 2, 99, -1}, .top_k = 1}),
              ElementsAre(kNever, kNever, kNever, kNever, 3));
  EXPECT_THAT(filtered({-1, 2, 0}, {.repetition_penalty = 2}, {0, 1, 1, 0, 2}), ElementsAre(-2, 1, 0));
  EXPECT_THAT(filtered({5, 6, 7, 8}, {.no_repeat_ngram = 2}, {1, 3, 1}), ElementsAre(5, 6, 7, kNever));
  EXPECT_THAT(filtered({5, 6, 7, 8}, {.no_repeat_ngram = 1}, {0, 2}), ElementsAre(kNever, 6, kNever, 8));
  EXPECT_THAT(filtered({5, 6, 7, 8}, {.no_repeat_ngram = 3}, {2}), ElementsAre(5, 6, 7, 8));
}

TEST(LogitsFilters, ANucleusOfManyTokensIsTheSortedOne) {
  Random random(3);
  for (const double p : {0.05, 0.5, 0.9, 0.999}) {
    for (const float spread : {0.1f, 3.0f}) {
      std::vector<float> logits(1009);
      for (float& logit : logits) logit = spread * static_cast<float>(random.normal());
      std::vector<size_t> order(logits.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
      double sum = 0, above = 0;
      for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
      std::vector<float> expected(logits.size(), kNever);
      for (const size_t w : order) {
        if (above >= p * sum) break;
        expected[w] = logits[w];
        above += std::exp(static_cast<double>(logits[w]));
      }
      EXPECT_EQ(filtered(logits, {.top_p = p}), expected) << p << " " << spread;
    }
  }
}

TEST(Draw, ComesAsOftenAsItsProbability) {
  const std::vector<float> logits{0.5f, -1, 2, kNever, 1.25f, 0, -3};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  constexpr int kDraws = 20011;
  std::vector<int> count(logits.size(), 0);
  for (uint64_t n = 0; n < kDraws; ++n) {
    // A stream for each draw: the streams must be as independent as the numbers of one.
    ++count[static_cast<size_t>(draw(logits, Random(7, n).uniform()))];
  }
  double chi_square = 0;
  for (size_t w = 0; w < logits.size(); ++w) {
    const double expected = kDraws * std::exp(static_cast<double>(logits[w])) / sum;
    if (expected == 0) {
      EXPECT_EQ(count[w], 0);
    } else {
      chi_square += (count[w] - expected) * (count[w] - expected) / expected;
    }
  }
  EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom: a thousandth is above
}

TEST(Draw, AtTheEndsOfTheUniformNumbersStaysAmongWhatCanCome) {
  const std::vector<float> logits{kNever, 1, kNever, 2, kNever};
  EXPECT_EQ(draw(logits, 0), 1);
  EXPECT_EQ(draw(logits, std::nextafter(1.0, 0.0)), 3);
  EXPECT_EQ(most_probable(std::vector<float>{1, 5, 2, 5}), 1);
}

TEST(LogitsFilters, RefuseWhatCannotBe) {
  const auto expect_refused = [](const LogitsFilterOptions& options, const char* what) {
    EXPECT_THAT([&] { logits_filters(options); }, ThrowsMessage<UsageError>(HasSubstr(what)));
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  expect_refused({.repetition_penalty = 0}, "`repetition_penalty`: expected a number from 1e-06 to 1000000");
  expect_refused({.temperature = 0}, "`temperature`: expected a number from");
  expect_refused({.temperature = kNan}, "got nan");
  expect_refused({.top_k = -1}, "`top_k`: expected");
  expect_refused({.top_p = 1.5}, "`top_p`: expected a number from 0 to 1, got 1.5");
  expect_refused({.min_p = -0.1}, "`min_p`");
  EXPECT_THAT([] { draw(std::vector<float>(3, kNever), 0.5); },
              ThrowsMessage<Error>(HasSubstr("suppressed")));
  EXPECT_THAT(
      [] {
        most_probable(std::vector<float>{1, std::nanf("")});
      },
      ThrowsMessage<Error>(HasSubstr("not finite")));
}

}  // namespace
}  // namespace mh

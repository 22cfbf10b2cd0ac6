// Gates and rules of the heads of a translator, patterns of heads, and rules under a dense mask.
#include <gmock/gmock.h>

#include <cstdint>
#include <iterator>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class ChangedHeads : public testing::Test {
 protected:
  ChangedHeads() { model.initialise(5); }
  /// The values at all sites, with what is asked for.
  const SiteValues& seen(SiteValues& asked) {
    asked.keep("*");
    Tape tape;
    Context context{.tape = tape, .sites = &asked};
    model.read(context, source.view(), target.view());
    return asked;
  }
  static void expect_times(const Tensor& found, float factor, const Tensor& whole, double within) {
    ASSERT_EQ(found.size(), whole.size());
    for (int64_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found.data()[i], factor * whole.data()[i], within) << i;
  }

  EncoderDecoder model{small_shape().config()};
  const Batch source{random_sources(5, {3, 7, 2})}, target{random_sources(6, {5, 2, 4})};
};

TEST_F(ChangedHeads, GatesMultiplyWhatAHeadAdds) {
  SiteValues none, one, half, zero, muted;
  const std::string head = "decoder.0.cross_attention.3", site = "decoder.0.cross_attention.contributions.3";
  one.set_gate(head, 1);
  half.set_gate(head, 0.5f);
  zero.set_gate(head, 0);
  muted.mute(head);
  const Tensor &whole = seen(none).value(site), &states = none.value("decoder.states");
  expect_times(seen(one).value("decoder.states"), 1, states, 1e-6);
  expect_times(seen(half).value(site), 0.5f, whole, 1e-6);
  expect_times(seen(zero).value(site), 0, whole, 0);
  expect_times(zero.value("decoder.states"), 1, seen(muted).value("decoder.states"), 0);
}

TEST_F(ChangedHeads, TheLastRuleOfAHeadCounts) {
  SiteValues several, alone;
  several.replace_weights("encoder.1.self_attention.0", WeightRule::kFirst);
  several.replace_weights("encoder.*", WeightRule::kPrevious);
  several.replace_weights("encoder.1.self_attention.1", WeightRule::kUniform);
  alone.replace_weights("encoder.0.self_attention.*", WeightRule::kPrevious);
  alone.replace_weights("encoder.1.self_attention.0", WeightRule::kPrevious);
  alone.replace_weights("encoder.1.self_attention.1", WeightRule::kUniform);
  model.check(several);
  expect_times(seen(several).value("decoder.states"), 1, seen(alone).value("decoder.states"), 0);
  EXPECT_EQ(several.value("encoder.1.self_attention.weights.0")(2, 1), 1);
  EXPECT_EQ(several.value("encoder.1.self_attention.weights.1")(3, 5), 1 / 7.0f);
  // The same text again takes the place of the rule before it.
  several.replace_weights("encoder.*", WeightRule::kFirst);
  EXPECT_EQ(seen(several).value("encoder.1.self_attention.weights.1")(4, 0), 1);
}

TEST_F(ChangedHeads, NumbersOfOneQueryComeAfterTheRule) {
  SiteValues values;
  Tensor numbers(1, 7);
  numbers(0, 6) = 3;
  values.replace_weights("encoder.0.self_attention.1", WeightRule::kFirst);
  values.replace({.site = "encoder.0.self_attention.weights.1",
                  .sequence = 1,
                  .position = 4,
                  .numbers = std::move(numbers)});
  const Tensor& weights = seen(values).value("encoder.0.self_attention.weights.1");
  EXPECT_EQ(weights(3 + 4, 0), 0);
  EXPECT_EQ(weights(3 + 4, 6), 3);
  EXPECT_EQ(weights(3 + 5, 0), 1);
}

TEST_F(ChangedHeads, AHeadIsNotMutedAndGated) {
  SiteValues both, apart;
  both.mute("*.1.self_attention.*");
  both.set_gate("decoder.*.2", 0.5f);
  EXPECT_THAT(
      [&] { model.check(both); },
      ThrowsMessage<UsageError>(HasSubstr("decoder.1.self_attention.2 is muted by '*.1.self_attention.*' and "
                                          "gated by 'decoder.*.2'")));
  apart.mute("encoder.*.self_attention.*");  // that both texts could name one head makes none
  apart.set_gate("*.cross_attention.*", 0.5f);
  EXPECT_NO_THROW(model.check(apart));
}

TEST_F(ChangedHeads, HeadsThatAreNotThereAreNamed) {
  SiteValues none, rule;
  EXPECT_TRUE(none.empty());
  rule.replace_weights("decoder.*.sidelong_attention.1", WeightRule::kFirst);
  EXPECT_FALSE(rule.empty());
  EXPECT_THAT(
      [&] { model.check(rule); },
      ThrowsMessage<UsageError>(HasSubstr("no head 'decoder.*.sidelong_attention.1'; it has encoder.0")));
  EXPECT_THAT([&] { rule.replace_weights("self_attention", WeightRule::kFirst); },
              ThrowsMessage<UsageError>(HasSubstr("head 'self_attention': expected an attention")));
}

constexpr WeightRule kAllRules[] = {WeightRule::kUniform, WeightRule::kPrevious, WeightRule::kFirst};

// A dense mask may leave keys that do not follow one another, or none.
TEST(WeightRulesOfADenseMask, TakeTheKeysThatItLeaves) {
  DropoutStreams dropout_streams;
  MultiHeadAttention layer("layer", {.d_model = 6, .geometry = {.heads = 2}}, dropout_streams);
  Random random(3);
  layer.initialise(random);
  Tensor x(5, 6);
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(random.normal());
  const uint64_t bits[5] = {0b11010, 0b00000, 0b10001, 0b00100, 0b11111};
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{5});
  const float third = 1 / 3.0f;
  const std::vector<std::vector<float>> expected[] = {
      {{0, third, 0, third, third},
       {0, 0, 0, 0, 0},
       {.5f, 0, 0, 0, .5f},
       {0, 0, 1, 0, 0},
       {.2f, .2f, .2f, .2f, .2f}},
      {{0, 1, 0, 0, 0}, {0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 1, 0}},
      {{0, 1, 0, 0, 0}, {0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {0, 0, 1, 0, 0}, {1, 0, 0, 0, 0}}};
  for (size_t r = 0; r < std::size(kAllRules); ++r) {
    SiteValues values;
    values.replace_weights("layer.1", kAllRules[r]);
    values.keep("layer.weights.1");
    Tape tape;
    Context context{.tape = tape, .sites = &values};
    layer.self(context, tape.constant(x.view()), {.ids = {}, .ragged = &ragged, .sentences = {}},
               Mask::dense({.words = bits, .words_per_row = 1}));
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 5; ++j)
        EXPECT_EQ(values.value("layer.weights.1")(i, j),
                  expected[r][static_cast<size_t>(i)][static_cast<size_t>(j)])
            << name_of(kAllRules[r], kWeightRuleNames) << " " << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace mh

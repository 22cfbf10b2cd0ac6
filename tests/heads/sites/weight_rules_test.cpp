// Rules in place of a head's weights: what each kind of stack then computes, in whole passes and in cached decoding.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "multihead/autograd/ops.h"
#include "multihead/base/random.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/nn/stack.h"
#include "multihead/nn/stack_cache.h"
#include "tests/nn/stack_kinds.h"

namespace mh {
namespace {

using test::StackKind;

constexpr WeightRule kRules[] = {WeightRule::kUniform, WeightRule::kPrevious, WeightRule::kFirst};

/// A translator's decoder, a few of whose layers have windows.
StackConfig windowed_stack(std::vector<StackMask> masks) {
  StackConfig config = test::crossed_stack(Activation::kGelu);
  config.layers.resize(masks.size(), config.layers[0]);
  for (size_t i = 0; i < masks.size(); ++i) config.layers[i].mask = masks[i];
  return config;
}

std::vector<StackKind> ruled_kinds() {
  StackConfig llama = test::llama_stack();
  llama.layers[1].mask = StackMask::sliding_window(3);
  StackConfig modern = test::small_stack({.positions = Positions::kRotary}, Activation::kGelu);
  modern.layers[1].mask = StackMask::local(2);
  const auto with = [](const char* geometry) {
    return test::small_stack({.layers = {{.self_attention = geometry_preset(geometry, 3, test::kStackWidth),
                                          .feed_forward = {.d_ff = 7}}},
                              .mask = StackMask::causal()},
                             Activation::kGelu);
  };
  return {{"encoder", test::small_stack({}, Activation::kGelu)},
          {"alibi", test::small_stack({.mask = StackMask::causal(), .positions = Positions::kAlibi},
                                      Activation::kGelu)},
          {"llama", llama},
          {"modernbert", modern},
          {"crossed", windowed_stack({StackMask::causal(), StackMask::sliding_window(2)})},
          {"own_key_alone", windowed_stack({StackMask::sliding_window(1), StackMask::causal()})},
          {"differential", with("differential")},
          {"talking", with("talking")}};
}

/// Whether the query at position i may see key j, by the definition of each mask.
bool may_see(const StackMask& mask, int32_t i, int32_t j) {
  switch (mask.kind) {
    case StackMask::Kind::kNone:
      return true;
    case StackMask::Kind::kLocal:
      return std::abs(i - j) <= mask.window;
    case StackMask::Kind::kCausal:
      return j <= i;
    case StackMask::Kind::kWindow:
      return j <= i && j > i - mask.window;
  }
  return false;
}

/// The weights of query i over `keys` keys.
std::vector<double> expected_weights(WeightRule rule, const StackMask& mask, int32_t i, int32_t keys) {
  std::vector<int32_t> seen;
  for (int32_t j = 0; j < keys; ++j) {
    if (may_see(mask, i, j)) seen.push_back(j);
  }
  std::vector<double> weights(static_cast<size_t>(keys), 0.0);
  if (rule == WeightRule::kUniform) {
    for (const int32_t j : seen) weights[static_cast<size_t>(j)] = 1.0 / static_cast<double>(seen.size());
  } else {
    const int32_t wanted = rule == WeightRule::kFirst ? 0 : i - 1;
    weights[static_cast<size_t>(std::clamp(wanted, seen.front(), seen.back()))] = 1;
  }
  return weights;
}

class WeightRules : public testing::TestWithParam<StackKind> {
 protected:
  WeightRules() : stack(config(), dropout_streams) {
    Random random(17);
    stack.initialise(random);
    for (Tensor* numbers : {&x, &memory_rows}) {
      for (int64_t i = 0; i < numbers->size(); ++i) numbers->data()[i] = static_cast<float>(random.normal());
    }
  }
  static const StackConfig& config() { return GetParam().config; }
  static const StackMask& mask_of(const MultiHeadAttention& attention) { return attention.config().mask; }
  static bool crosses(const MultiHeadAttention& attention) {
    return attention.name().ends_with("cross_attention");
  }
  static SiteValues ruled(WeightRule rule, const std::string& heads = "*") {
    SiteValues values;
    values.replace_weights(heads, rule);
    values.keep("*");
    return values;
  }

  Tensor states(SiteValues& values) {
    Tape tape;
    return copied(run(tape, values).value());
  }
  Var run(Tape& tape, SiteValues& values) {
    Context context{.tape = tape, .sites = &values};
    const Memory read{.rows = tape.constant(memory_rows.view()), .sequences = &memory_sequences};
    return stack.forward(context, tape.constant(x.view()), sequences,
                         config().cross_attention ? &read : nullptr);
  }

  DropoutStreams dropout_streams;
  Stack stack;
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{7, 1, 5});
  const Sequences sequences{.ids = {}, .ragged = &ragged, .sentences = {}};
  const Ragged memory_ragged = Ragged::from_lengths(std::vector<int32_t>{3, 2, 11});
  const Sequences memory_sequences{.ids = {}, .ragged = &memory_ragged, .sentences = {}};
  Tensor x{13, test::kStackWidth}, memory_rows{16, test::kStackWidth};
};

INSTANTIATE_TEST_SUITE_P(Kinds, WeightRules, testing::ValuesIn(ruled_kinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(WeightRules, GiveTheValuesThatTheyName) {
  for (const WeightRule rule : kRules) {
    SiteValues values = ruled(rule);
    states(values);
    stack.visit_attentions([&](const MultiHeadAttention& attention, const AttentionPlace&) {
      const HeadGeometry& geometry = attention.geometry();
      const bool normed = geometry.weights == HeadWeights::kDifferential;
      const KeptValue &rows = values.kept(attention.name() + ".values"),
                      &heads = values.kept(attention.name() + ".heads");
      for (int head = 0; head < attention.heads(); ++head) {
        const KeptValue& weights = values.kept(attention.name() + ".weights." + std::to_string(head));
        const int64_t size = geometry.d_value, group = head * geometry.value_heads / geometry.heads;
        for (int32_t s = 0; s < ragged.sequences(); ++s) {
          const ConstMatrixView found = weights.sequence(s), v = rows.sequence(s), z = heads.sequence(s);
          for (int32_t i = 0; i < ragged.length(s); ++i) {
            SCOPED_TRACE(testing::Message()
                         << attention.name() << " head " << head << " rule "
                         << name_of(rule, kWeightRuleNames) << " sequence " << s << " query " << i);
            const auto expected = expected_weights(rule, mask_of(attention), i, static_cast<int32_t>(v.rows));
            for (int64_t j = 0; j < v.rows; ++j)
              ASSERT_NEAR(found(i, j), expected[static_cast<size_t>(j)], 1e-7) << "key " << j;
            for (int64_t c = 0; c < size && !normed; ++c) {
              double mean = 0;
              for (int64_t j = 0; j < v.rows; ++j)
                mean += expected[static_cast<size_t>(j)] * double{v(j, group * size + c)};
              ASSERT_NEAR(z(i, head * size + c), mean, 1e-6);
            }
          }
        }
      }
    });
  }
}

TEST_P(WeightRules, AreTheSameInCachedDecoding) {
  if (config().mask_of(0).direction() != AttentionDirection::kCausal) return;
  for (const WeightRule rule : kRules) {
    SiteValues whole = ruled(rule), steps = ruled(rule);
    const Tensor expected = states(whole);
    Tape tape;
    Context context{.tape = tape, .sites = &steps};
    const Memory read{.rows = tape.constant(memory_rows.view()), .sequences = &memory_sequences};
    StackCache cache;
    stack.start(context, config().cross_attention ? &read : nullptr, cache);
    const std::vector<int32_t> sources{0, 1, 2};
    // Two rows of each sequence that has them, then one at a time; a sequence that has ended reads none.
    for (int32_t position = 0, many = 2; position < 7; position += many, many = 1) {
      Ragged added;
      std::vector<int32_t> rows;
      for (int32_t s = 0; s < ragged.sequences(); ++s) {
        const int32_t end = std::max(position, std::min(position + many, ragged.length(s)));
        added.add(end - position);
        for (int32_t i = position; i < end; ++i) rows.push_back(ragged.begin(s) + i);
      }
      Tensor in(static_cast<int64_t>(rows.size()), test::kStackWidth);
      for (size_t i = 0; i < rows.size(); ++i)
        std::copy_n(x.view().row(rows[i]), test::kStackWidth, in.view().row(static_cast<int64_t>(i)));
      const ConstMatrixView found =
          stack
              .extend(context, tape.constant(in.view()),
                      {.rows = &added,
                       .sources = config().cross_attention ? std::span<const int32_t>(sources)
                                                           : std::span<const int32_t>()},
                      cache)
              .value();
      for (int64_t i = 0; i < found.rows; ++i) {
        for (int64_t c = 0; c < found.cols; ++c)
          ASSERT_NEAR(found(i, c), expected(rows[static_cast<size_t>(i)], c), 2e-5)
              << name_of(rule, kWeightRuleNames) << " from position " << position << " row " << i;
      }
    }
  }
}

TEST_P(WeightRules, LeaveTheGradientToTheValues) {
  stack.visit_attentions([&](const MultiHeadAttention& attention, const AttentionPlace&) {
    SCOPED_TRACE(attention.name());
    SiteValues values;
    values.replace_weights(attention.name() + ".*", WeightRule::kUniform);
    for (const char* part : {".queries", ".keys", ".values"}) values.watch(attention.name() + part);
    Tape tape(Tape::Mode::kRecordValues);
    const Var states_of_all = run(tape, values);
    Tensor weights(states_of_all.rows(), states_of_all.cols());
    for (int64_t i = 0; i < weights.size(); ++i) weights.data()[i] = static_cast<float>(i % 7) - 2.5f;
    tape.backward(ops::sum(tape, ops::multiply(tape, states_of_all, tape.constant(weights.view()))));
    const auto largest = [&](const char* part) {
      const ConstMatrixView gradient = values.gradient(attention.name() + part);
      float most = 0;
      for (int64_t i = 0; i < gradient.rows; ++i) {
        for (int64_t c = 0; c < gradient.cols; ++c) most = std::max(most, std::abs(gradient(i, c)));
      }
      return most;
    };
    EXPECT_EQ(largest(".queries"), 0);
    EXPECT_EQ(largest(".keys"), 0);
    EXPECT_GT(largest(".values"), 1e-4f);
  });
}

}  // namespace
}  // namespace mh

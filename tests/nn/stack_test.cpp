// Properties of every stack: new rows against a cache give the states of whole sequences, however they are
// cut; a cache is a value; a window hides the keys outside of it; one bias serves all layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/base/random.h"
#include "multihead/nn/stack.h"
#include "multihead/nn/stack_cache.h"
#include "tests/nn/stack_kinds.h"

namespace mh {
namespace {

using test::StackKind;
constexpr int kWidth = test::kStackWidth;

StackConfig causal(StackConfig config) {
  config.name = "decoder";
  if (config.mask.kind == StackMask::Kind::kNone) config.mask = StackMask::causal();
  return test::small_stack(std::move(config), Activation::kRelu);
}

std::vector<StackKind> causal_kinds() {
  return {
      {"paper", causal({})},
      {"pre", causal({.norm = {.placement = NormPlacement::kPre}})},
      {"llama", test::llama_stack()},
      {"window", causal({.mask = StackMask::sliding_window(3), .positions = Positions::kRotary})},
      {"alibi", causal({.positions = Positions::kAlibi})},
      {"t5", causal({.layers = {{.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 17}},
                                {.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 13}}},
                     .positions = Positions::kT5,
                     .one_bias = true,
                     .norm = test::kRmsBefore})},
      {"shaw", causal({.positions = Positions::kShaw})},
      {"memory", test::crossed_stack(Activation::kRelu)},
  };
}

class Stacks : public testing::TestWithParam<StackKind> {
 protected:
  Stacks() : stack(GetParam().config, streams) {
    Random random(11);
    stack.initialise(random);
    for (Tensor* numbers : {&x, &memory_rows}) {
      for (int64_t i = 0; i < numbers->size(); ++i) numbers->data()[i] = static_cast<float>(random.normal());
    }
  }
  Memory memory(Tape& tape) {
    return {.rows = tape.constant(memory_rows.view()), .sequences = &memory_sequences};
  }
  bool crosses() const { return GetParam().config.cross_attention; }

  /// States of both sequences, read whole.
  Tensor whole() {
    Tape tape;
    Context context{.tape = tape};
    const Memory read = memory(tape);
    return copied(
        stack.forward(context, tape.constant(x.view()), sequences, crosses() ? &read : nullptr).value());
  }
  /// Reads `count` more rows of sequences 0 and 1 into the cache; compares their states with whole().
  void extend(StackCache& cache, const std::vector<int32_t>& counts, const Tensor& expected) {
    Ragged rows;
    std::vector<int32_t> numbers, sources;
    for (int32_t s = 0; s < 2; ++s) {
      const int32_t begin = ragged.begin(s) + (cache.sequences() > 0 ? cache.length(s) : 0);
      for (int32_t i = 0; i < counts[static_cast<size_t>(s)]; ++i) numbers.push_back(begin + i);
      rows.add(counts[static_cast<size_t>(s)]);
      sources.push_back(s);
    }
    Tensor in(static_cast<int64_t>(numbers.size()), kWidth);
    for (size_t i = 0; i < numbers.size(); ++i)
      std::copy_n(x.view().row(numbers[i]), kWidth, in.view().row(static_cast<int64_t>(i)));
    Tape tape;
    Context context{.tape = tape};
    const NewRows added{
        .rows = &rows, .sources = crosses() ? std::span<const int32_t>(sources) : std::span<const int32_t>()};
    const MatrixView states = stack.extend(context, tape.constant(in.view()), added, cache).value();
    for (size_t i = 0; i < numbers.size(); ++i) {
      for (int64_t c = 0; c < kWidth; ++c)
        ASSERT_NEAR(states(static_cast<int64_t>(i), c), expected(numbers[i], c), 2e-5) << numbers[i];
    }
  }
  StackCache fresh() {
    StackCache cache;
    Tape tape;
    Context context{.tape = tape};
    const Memory read = memory(tape);
    stack.start(context, crosses() ? &read : nullptr, cache);
    return cache;
  }

  DropoutStreams streams;
  Stack stack;
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{11, 7});
  const Sequences sequences{.ids = {}, .ragged = &ragged, .sentences = {}};
  const Ragged memory_ragged = Ragged::from_lengths(std::vector<int32_t>{5, 3});
  const Sequences memory_sequences{.ids = {}, .ragged = &memory_ragged, .sentences = {}};
  Tensor x{18, kWidth}, memory_rows{8, kWidth};
};

TEST_P(Stacks, ReadInAnyPartsGiveTheSameStates) {
  const Tensor expected = whole();
  for (const auto& parts : std::vector<std::vector<std::vector<int32_t>>>{
           {{11, 7}}, {{1, 1}, {1, 1}, {1, 1}, {8, 4}}, {{5, 2}, {1, 1}, {2, 3}, {1, 1}}, {{4, 1}, {7, 6}}}) {
    StackCache cache = fresh();
    for (const auto& counts : parts) extend(cache, counts, expected);
  }
}

TEST_P(Stacks, ACacheIsAValue) {
  const Tensor expected = whole();
  StackCache cache = fresh();
  extend(cache, {4, 3}, expected);
  StackCache kept = cache;
  extend(cache, {6, 2}, expected);
  extend(kept, {1, 1}, expected);  // a copy goes its own way
  cache.cut(2);
  EXPECT_EQ(cache.length(0), 2);
  extend(cache, {3, 4}, expected);  // behind what was cut
  cache.select(std::vector<int32_t>{1, 0, 1});
  EXPECT_EQ(cache.sequences(), 3);
  EXPECT_EQ(cache.length(0), 6);
  cache.select(std::vector<int32_t>{1, 0});
  extend(cache, {2, 1}, expected);
  EXPECT_THROW(cache.select(std::vector<int32_t>{2}), UsageError);
  EXPECT_THROW(cache.cut(-1), UsageError);
}

TEST_P(Stacks, NoRowDependsOnWhatIsBehindIt) {
  const Tensor before = whole();
  x(8, 3) += 1;  // row 8 of sequence 0
  const Tensor after = whole();
  for (int64_t i = 0; i < 18; ++i) {
    bool same = true;
    for (int64_t c = 0; c < kWidth; ++c) same = same && before(i, c) == after(i, c);
    EXPECT_EQ(same, i < 8 || i >= 11) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(StackKind, Stacks, testing::ValuesIn(causal_kinds()),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// Which of 9 rows a layer gives another state when row 2 changes.
std::vector<int> rows_that_see_row_2(StackConfig config) {
  config.layers.resize(1);
  DropoutStreams streams;
  Stack stack(config, streams);
  Random random(3);
  stack.initialise(random);
  Tensor x(9, kWidth);
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(random.normal());
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{9});
  const auto states = [&] {
    Tape tape;
    Context context{.tape = tape};
    return copied(
        stack.forward(context, tape.constant(x.view()), {.ids = {}, .ragged = &ragged, .sentences = {}})
            .value());
  };
  const Tensor before = states();
  x(2, 0) += 1;
  const Tensor after = states();
  std::vector<int> changed;
  for (int i = 0; i < 9; ++i) {
    if (before(i, 0) != after(i, 0)) changed.push_back(i);
  }
  return changed;
}

TEST(StackWindow, HidesWhatIsFartherAway) {
  StackConfig config = causal({.mask = StackMask::sliding_window(3)});
  EXPECT_THAT(rows_that_see_row_2(config), testing::ElementsAre(2, 3, 4));
  config.layers[0].mask = StackMask::sliding_window(2);  // of the layer, in the place of its stack's
  EXPECT_THAT(rows_that_see_row_2(config), testing::ElementsAre(2, 3));
  config.layers[0].mask = StackMask::causal();
  EXPECT_THAT(rows_that_see_row_2(config), testing::ElementsAre(2, 3, 4, 5, 6, 7, 8));
  config.layers[0].mask = StackMask::local(3);
  EXPECT_THAT(rows_that_see_row_2(config), testing::ElementsAre(0, 1, 2, 3, 4, 5));
  for (const StackMask& none : {StackMask::sliding_window(0), StackMask::local(0)}) {
    config.layers[0].mask = none;
    EXPECT_THAT([&] { rows_that_see_row_2(config); },
                testing::ThrowsMessage<UsageError>(testing::HasSubstr("window is 0; expected at least 1")));
  }
}

TEST(StackPositions, OneBiasNeedsLayersOfEquallyManyHeads) {
  DropoutStreams streams;
  EXPECT_THROW(Stack(causal({.positions = Positions::kT5, .one_bias = true}), streams), UsageError);
}

TEST(StackPositions, VectorsOfDistancesAreThoseOfTheFirstLayerThatHasSuchPositions) {
  StackConfig config{.d_model = 6, .positions = Positions::kDisentangled};
  config.layers.assign(3, {.self_attention = {.heads = 2}, .feed_forward = {.d_ff = 5}});
  config.layers[0].positions = Positions::kNone;
  DropoutStreams streams;
  Stack stack(config, streams);
  std::vector<std::string> tables;
  stack.visit([&](const std::string& name, Parameter&) {
    if (name.ends_with(".distance_vectors")) tables.push_back(name);
  });
  EXPECT_EQ(tables, std::vector<std::string>{"encoder.1.self_attention.distance_vectors"});
}

TEST(StackPositions, OneBiasIsOneParameterAndGetsAllLayersGradients) {
  const auto gradient = [](bool one) {
    StackConfig config = causal({.positions = Positions::kT5, .one_bias = one});
    config.layers[1] = config.layers[0];
    DropoutStreams streams;
    Stack stack(config, streams);
    std::vector<std::string> tables;
    std::vector<Tensor> sums;
    const auto for_tables = [&](const std::function<void(Parameter&)>& visit) {
      stack.visit([&](const std::string& name, Parameter& p) {
        if (name.find("distance_bias") != std::string::npos) visit(p);
      });
    };
    stack.visit([&](const std::string& name, Parameter& p) {
      Random own(name.size() + static_cast<uint64_t>(name[8]));  // by name: the same with one table or two
      for (int64_t i = 0; i < p.value.size(); ++i) p.value.data()[i] = static_cast<float>(0.3 * own.normal());
      p.changed();
    });
    for_tables([](Parameter& p) {
      p.value.fill(0.1f);
      p.changed();
    });
    Tensor x(5, kWidth), seed(5, kWidth);
    Random random(3);
    for (Tensor* t : {&x, &seed}) {
      for (int64_t i = 0; i < t->size(); ++i) t->data()[i] = static_cast<float>(random.normal());
    }
    const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{5});
    Tape tape(Tape::Mode::kRecord);
    Context context{.tape = tape};
    const Var y =
        stack.forward(context, tape.constant(x.view()), {.ids = {}, .ragged = &ragged, .sentences = {}});
    tape.seed(y, seed.view());
    tape.backward();
    Tensor sum(3, T5Buckets().count);
    int count = 0;
    for_tables([&](Parameter& p) {
      ++count;
      for (int64_t i = 0; i < sum.size(); ++i) sum.data()[i] += p.gradient.view().data[i];
    });
    EXPECT_EQ(count, one ? 1 : 2);
    return sum;
  };
  const Tensor shared = gradient(true), apart = gradient(false);
  for (int64_t i = 0; i < shared.size(); ++i) EXPECT_NEAR(shared.data()[i], apart.data()[i], 1e-5);
}

}  // namespace
}  // namespace mh

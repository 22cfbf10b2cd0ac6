// A cache that keeps bfloat16 gives the bits of one that keeps float32 whose keys and values were rounded before, for every
// kind of stack, whether rows come one by one or many, in any order of its sequences.
#include <gtest/gtest.h>

#include <cstring>

#include "multihead/base/random.h"
#include "multihead/base/thread_pool.h"
#include "multihead/nn/stack.h"
#include "multihead/nn/stack_cache.h"
#include "tests/nn/stack_kinds.h"
#include "tests/support/round_keys.h"

namespace mh {
namespace {

using test::StackKind;

/// A causal stack of this kind of heads.
StackConfig causal_stack_of(const HeadGeometry& heads, Positions positions = Positions::kNone) {
  StackConfig config{
      .name = "decoder",
      .layers = std::vector<LayerConfig>(2, {.self_attention = heads, .feed_forward = {.d_ff = 13}}),
      .mask = StackMask::causal(),
      .positions = positions};
  return test::small_stack(std::move(config), Activation::kRelu);
}

std::vector<StackKind> cached_kinds() {
  StackConfig window = causal_stack_of({.heads = 3}, Positions::kRotary);
  window.mask = StackMask::sliding_window(5);
  StackConfig t5 = causal_stack_of({.heads = 3}, Positions::kT5);
  t5.one_bias = true;
  t5.norm = test::kRmsBefore;
  return {{"llama", test::llama_stack()},
          {"window", window},
          {"t5", t5},
          {"alibi", causal_stack_of({.heads = 2}, Positions::kAlibi)},
          {"shaw", causal_stack_of({.heads = 3}, Positions::kShaw)},
          {"capped", causal_stack_of({.heads = 3, .soft_cap = 0.75f})},
          {"talking", causal_stack_of({.heads = 3, .weights = HeadWeights::kTalking})},
          {"differential", causal_stack_of({.heads = 3, .d_key = 2, .weights = HeadWeights::kDifferential})},
          {"memory", test::crossed_stack(Activation::kRelu)}};
}

class CachedRowsOf : public testing::TestWithParam<StackKind> {
 protected:
  CachedRowsOf() : stack(GetParam().config, streams) {
    Random random(17);
    stack.initialise(random);
    for (Tensor* numbers : {&x, &memory_rows}) {
      for (int64_t i = 0; i < numbers->size(); ++i) numbers->data()[i] = static_cast<float>(random.normal());
    }
  }

  /// States of new rows, step by step: a long prompt and a short one, one row each, a few, and more.
  std::vector<float> states(StackCache cache, Sites* sites, int threads) {
    const int before = thread_count();
    set_thread_count(threads);
    Tape tape;
    Context context{.tape = tape, .sites = sites};
    const bool crosses = GetParam().config.cross_attention;
    const Memory memory{.rows = tape.constant(memory_rows.view()), .sequences = &memory_sequences};
    stack.start(context, crosses ? &memory : nullptr, cache);
    std::vector<float> all;
    int32_t next = 0;
    const auto read = [&](const std::vector<int32_t>& counts, std::span<const int32_t> parents) {
      const Ragged rows = Ragged::from_lengths(counts);
      const std::vector<int32_t> sources{0, 1};
      tape.clear();
      const MatrixView in(x.view().row(next), rows.rows(), test::kStackWidth);
      next += static_cast<int32_t>(rows.rows());
      const NewRows added{
          .rows = &rows,
          .parents = parents,
          .sources = crosses ? std::span<const int32_t>(sources) : std::span<const int32_t>()};
      const ConstMatrixView found = stack.extend(context, tape.constant(in), added, cache).value();
      all.insert(all.end(), found.data, found.data + found.size());
    };
    read({271, 5}, {});
    read({1, 1}, {});
    read({3, 2}, {});
    read({1, 19}, {});
    cache.cut(269);
    read({1, 1}, {});
    const std::vector<int32_t> swapped{1, 0};
    read({1, 1}, crosses ? std::span<const int32_t>() : std::span<const int32_t>(swapped));
    const StackCache copy = cache;
    cache = copy;
    read({7, 1}, {});
    set_thread_count(before);
    return all;
  }

  DropoutStreams streams;
  Stack stack;
  const Ragged memory_ragged = Ragged::from_lengths(std::vector<int32_t>{5, 3});
  const Sequences memory_sequences{.ids = {}, .ragged = &memory_ragged, .sentences = {}};
  Tensor x{317, test::kStackWidth}, memory_rows{8, test::kStackWidth};
};

TEST_P(CachedRowsOf, Bfloat16AreRoundedOnce) {
  test::RoundKeys rounded;
  const std::vector<float> expected = states(StackCache(), &rounded, 1);
  for (const int threads : {1, 3}) {
    const std::vector<float> found = states(StackCache(CacheType::kBFloat16), nullptr, threads);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
        << threads << " threads";
  }
  const std::vector<float> exact = states(StackCache(), nullptr, 1);
  double worst = 0;
  for (size_t i = 0; i < exact.size(); ++i) worst = std::max(worst, std::abs(double{exact[i]} - expected[i]));
  EXPECT_GT(worst, 1e-5);
  EXPECT_LT(worst, 0.2);
}

INSTANTIATE_TEST_SUITE_P(StackKind, CachedRowsOf, testing::ValuesIn(cached_kinds()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(CachedRows, MayBeKeptInAnotherTypeAfterwards) {
  Tape tape;
  float numbers[] = {1.0f / 3, -2.0f / 7, 5, 0x1.FEp3f, 0.1f, 7};
  const Var keys = tape.constant(MatrixView(numbers, 2, 1)),
            values = tape.constant(MatrixView(numbers + 2, 2, 2));
  CachedRows rows;
  for (const CacheType type : {CacheType::kFloat32, CacheType::kBFloat16, CacheType::kFloat32}) {
    rows.start(type, 1, 2);
    rows.make_room(2, 0);
    rows.write(0, keys, values);
    rows.make_room(1000, 2);  // what is there stays
    const KeysAndValues read = rows.read(tape, 2);
    ASSERT_EQ(static_cast<bool>(read.keys), type == CacheType::kFloat32);
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t c = 0; c < 2; ++c) {
        const float value = numbers[2 + 2 * i + c];
        if (type == CacheType::kFloat32) {
          EXPECT_EQ(read.values.value()(i, c), value);
          EXPECT_EQ(read.keys.value()(i, 0), numbers[i]);
        } else {
          EXPECT_EQ(read.half_values(i, c), to_bfloat16(value));
          EXPECT_EQ(read.half_keys(i, 0), to_bfloat16(numbers[i]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace mh

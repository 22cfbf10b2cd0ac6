// Keys and values of bfloat16: the kernel gives the bits that it gives for the same numbers as float32, whichever way it
// computes, and what the formula in double gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "attention_case.h"
#include "multihead/base/error.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/half_rows.h"
#include "on_target.h"

namespace mh {
namespace {

/// Rounds the problem's keys and values where they are; the same as bfloat16.
struct Halves {
  explicit Halves(AttentionProblem& p) : keys(stored(p.k(), k)), values(stored(p.v(), v)), inputs(p.in) {
    inputs.k = inputs.v = {};
    inputs.half_k = keys;
    inputs.half_v = values;
  }
  static HalfView stored(const MatrixView& from, std::vector<uint16_t>& memory) {
    memory.assign(static_cast<size_t>(from.rows * from.stride), uint16_t{0x7FC5});  // NaN between the rows
    const HalfView to(memory.data(), from.rows, from.cols, from.stride);
    round_to_halves(from, to);
    for (int64_t i = 0; i < from.rows; ++i) {
      for (int64_t c = 0; c < from.cols; ++c) from(i, c) = from_bfloat16(to(i, c));
    }
    return to;
  }

  std::vector<uint16_t> k, v;
  HalfView keys, values;
  AttentionInputs inputs;
};

std::vector<float> results_of(AttentionProblem& p, const AttentionInputs& in, int threads) {
  const int before = thread_count();
  set_thread_count(threads);
  attention_forward(in, {p.output, p.lse.data(), p.weights.data(), p.statistics});
  set_thread_count(before);
  std::vector<float> all(p.lse);
  for (const auto* numbers : {&p.weights, &p.highest, &p.entropy, &p.expected_position, &p.mass})
    all.insert(all.end(), numbers->begin(), numbers->end());
  for (int64_t i = 0; i < p.output.rows; ++i) {
    const float* const row = p.output.row(i);
    all.insert(all.end(), row, row + p.output.cols);
  }
  return all;
}

void expect_the_bits_of_float32(const AttentionCase& c) {
  AttentionProblem p(c);
  p.want_statistics();
  const Halves halves(p);
  const std::vector<float> wide = results_of(p, p.in, 1);
  for (const int threads : {1, 3}) {
    const std::vector<float> half = results_of(p, halves.inputs, threads);
    ASSERT_EQ(half.size(), wide.size());
    EXPECT_EQ(std::memcmp(half.data(), wide.data(), wide.size() * sizeof(float)), 0)
        << c.queries[0] << " queries, " << c.keys[0] << " keys, " << c.heads << " heads over " << c.key_heads
        << ", " << threads << " threads";
  }
  const auto want = reference::attention(halves.inputs, reference::values_of(halves.inputs));
  const double largest = std::max(1.0, want.largest);
  const int64_t longest = *std::max_element(c.keys.begin(), c.keys.end());
  EXPECT_LE(worst(want.output, p.output), tolerance(largest, c.d_key + longest) * largest * c.heads);
}

class HalvesOnTarget : public testing::TestWithParam<std::string> {
  const OnTarget target_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Targets, HalvesOnTarget, testing::ValuesIn(dispatch_targets()),
                         [](const auto& info) { return info.param; });

TEST_P(HalvesOnTarget, EveryWayOfTheKernel) {
  const int heads[][3] = {{9, 3, 3}, {5, 1, 1}, {6, 2, 3}, {8, 2, 2}, {3, 3, 3}};
  const MaskChoice masks[] = {MaskChoice::kCausal, MaskChoice::kNone, MaskChoice::kWindow,
                              MaskChoice::kCausalTopLeft, MaskChoice::kDense};
  int n = 0;
  // One query of a short text, few queries, strips, both, and few queries of a long one.
  for (const int queries : {1, 2, 5, 6, 19, 67, 83}) {
    for (const int keys : {7, 61, 257, 523}) {
      AttentionCase c;
      c.queries = {queries, 1, 3};
      c.keys = {keys, 13, 271};
      const auto& h = heads[n % 5];
      c.heads = h[0];
      c.key_heads = h[1];
      c.value_heads = h[2];
      c.d_key = n % 3 == 0 ? 64 : 11 + n;
      c.d_value = n % 4 == 0 ? 32 : 7 + n;
      c.mask = masks[n % 5];
      if (n % 3 == 1) c.soft_cap = 2.5f;
      if (n % 4 == 2) c.gates = GateChoice::kOfEach;
      c.by_rows = n % 2 == 0;
      c.padding = n % 5 == 3 ? 9 : 0;
      c.bias.slopes = n % 7 == 1;
      c.bias.by_distance = n % 7 == 3;
      c.bias.buckets = n % 2 == 1;
      c.bias.elements = n % 7 == 4;
      c.bias.by_query = n % 7 == 5;
      c.bias.by_key = n % 7 >= 5;
      c.rate = n % 11 == 6 ? 0.3f : 0;
      ++n;
      expect_the_bits_of_float32(c);
    }
  }
}

// A tile of keys that lacks a few, and a row that is wider than any head.
TEST_P(HalvesOnTarget, WideRows) {
  for (const int keys : {3, 29, 258, 263}) {
    AttentionCase c;
    c.queries = {1};
    c.keys = {keys};
    c.heads = c.key_heads = c.value_heads = 13;
    c.d_key = 101;
    c.d_value = 97;
    expect_the_bits_of_float32(c);
  }
}

TEST(AttentionHalves, RoundingIsToTheNearestEven) {
  std::vector<float> numbers;
  Random random(5);
  for (int i = 0; i < 61; ++i) numbers.push_back(static_cast<float>(random.normal()));
  // Half-way between two: the even one; infinite numbers and NaN stay so.
  numbers.insert(numbers.end(), {0x1.01p0f, 0x1.03p0f, -0x1.01p0f, 0x1.010002p0f, 0x1.FFp127f, -0.0f});
  std::vector<uint16_t> halves(numbers.size());
  const auto count = static_cast<int64_t>(numbers.size());
  round_to_halves({numbers.data(), 1, count}, {halves.data(), 1, count});
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(halves[i], to_bfloat16(numbers[i])) << numbers[i];
  EXPECT_EQ(from_bfloat16(halves[61]), 1.0f);
  EXPECT_EQ(from_bfloat16(halves[62]), 0x1.04p0f);
  EXPECT_EQ(from_bfloat16(halves[64]), 0x1.02p0f);
  const float odd[] = {std::numeric_limits<float>::infinity(), std::nanf("")};
  round_to_halves({odd, 1, 2}, {halves.data(), 1, 2});
  EXPECT_EQ(from_bfloat16(halves[0]), odd[0]);
  EXPECT_TRUE(std::isnan(from_bfloat16(halves[1])));
}

TEST(AttentionHalves, HaveNoBackwardPass) {
  AttentionProblem p({.queries = {3}, .keys = {5}});
  Halves halves(p);
  EXPECT_THAT(
      [&] {
        attention_backward(halves.inputs, {p.output, p.lse.data(), p.d_output, p.d_q, p.d_k, p.d_v});
      },
      testing::ThrowsMessage<ShapeError>(testing::HasSubstr("half_k is given; gradients exist for keys of")));
  halves.inputs.half_k = {};
  EXPECT_THAT([&] { attention_forward(halves.inputs, {p.output}); },
              testing::ThrowsMessage<ShapeError>(testing::HasSubstr("half_v is given without half_k")));
}

}  // namespace
}  // namespace mh

// Scores that overflow have no softmax: the output is NaN, never a number that looks like a result. Sizes reach
// every path of the kernel: one query, a few, strips of them, and one against many keys.
#include "multihead/autograd/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "multihead/autograd/attention_maps.h"
#include "multihead/base/ragged.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

enum class Path { kFused, kComposed };

constexpr int kHeads = 3, kSize = 5;

/// Queries [1, queries], keys of sequence 2 of 2; the first sequence is small and finite.
struct OverflowCase {
  OverflowCase(int32_t queries, int32_t keys, const Mask& mask)
      : query_rows(Ragged::from_lengths(std::vector<int32_t>{2, queries})),
        key_rows(Ragged::from_lengths(std::vector<int32_t>{3, keys})),
        q(query_rows.rows(), kHeads * kSize),
        k(key_rows.rows(), kHeads * kSize),
        v(key_rows.rows(), kHeads * kSize) {
    for (Tensor* tensor : {&q, &k, &v}) tensor->fill(0.25f);
    inputs.heads = inputs.key_heads = inputs.value_heads = kHeads;
    inputs.d_key = inputs.d_value = kSize;
    inputs.query_offsets = query_rows.offsets();
    inputs.key_offsets = key_rows.offsets();
    inputs.mask = mask;
  }
  /// Query i and key j of the second sequence, all numbers of head h.
  void set_query(int64_t i, int h, float value) { set(q, 2 + i, h, value); }
  void set_key(int64_t j, int h, float value) { set(k, 3 + j, h, value); }

  /// Whether the output of query i of the second sequence is finite in head h; then it is 0.25, the value of all
  /// keys.
  bool is_finite(ConstMatrixView y, int64_t i, int h) const {
    const float* row = y.row(2 + i) + h * kSize;
    for (int c = 0; c < kSize; ++c) {
      if (!std::isfinite(row[c])) return false;
      EXPECT_NEAR(row[c], 0.25f, 1e-5f);
    }
    return true;
  }
  Tensor run(Path path) {
    Tape tape;
    const Var vq = tape.constant(q.view()), vk = tape.constant(k.view()), vv = tape.constant(v.view());
    if (path == Path::kFused) return copied(attention(tape, vq, vk, vv, inputs).value());
    const Var maps = softmax_maps(tape, attention_scores(tape, vq, vk, inputs, {}), inputs);
    return copied(weigh_values(tape, maps, vv, inputs).value());
  }

  Ragged query_rows, key_rows;
  Tensor q, k, v;
  AttentionInputs inputs;

 private:
  static void set(Tensor& rows, int64_t row, int h, float value) {
    for (int c = 0; c < kSize; ++c) rows(row, h * kSize + c) = value;
  }
};

class AttentionOverflow : public testing::TestWithParam<std::tuple<Path, int32_t, int32_t>> {};

// Head 1: every score of every query is far below the least float. Head 2: but for one key, which has all weight.
TEST_P(AttentionOverflow, NoScoreLeftIsNotANumber) {
  const auto [path, queries, keys] = GetParam();
  OverflowCase tested(queries, keys, Mask::none());
  for (int64_t i = 0; i < queries; ++i) {
    for (const int h : {1, 2}) tested.set_query(i, h, 2e38f);
  }
  for (int64_t j = 0; j < keys; ++j) {
    tested.set_key(j, 1, -7);
    tested.set_key(j, 2, j == keys - 1 ? 1e-30f : -7);
  }
  const Tensor y = tested.run(path);
  for (int64_t i = 0; i < queries; ++i) {
    EXPECT_TRUE(tested.is_finite(y.view(), i, 0));
    EXPECT_FALSE(tested.is_finite(y.view(), i, 1));
    EXPECT_TRUE(tested.is_finite(y.view(), i, 2));
  }
  for (int c = 0; c < kHeads * kSize; ++c) EXPECT_NEAR(y(1, c), 0.25f, 1e-5f);  // of the other sequence
}

// Causal: query i sees keys up to i, and the first whose score is a number is that of the middle.
TEST_P(AttentionOverflow, WhatAMaskHidesSavesNoQuery) {
  const auto [path, queries, keys] = GetParam();
  OverflowCase tested(queries, keys, Mask::causal());
  const int64_t middle = keys / 2;
  for (int64_t i = 0; i < queries; ++i) tested.set_query(i, 1, 2e38f);
  for (int64_t j = 0; j < keys; ++j) tested.set_key(j, 1, j == middle ? 1e-30f : -7);
  const Tensor y = tested.run(path);
  for (int64_t i = 0; i < queries; ++i) {
    EXPECT_TRUE(tested.is_finite(y.view(), i, 0));
    EXPECT_EQ(tested.is_finite(y.view(), i, 1), i + keys - queries >= middle) << i;
  }
}

// A score of +infinity leaves no weight for a softmax either.
TEST_P(AttentionOverflow, TooLargeScoresAreNotANumber) {
  const auto [path, queries, keys] = GetParam();
  OverflowCase tested(queries, keys, Mask::none());
  tested.set_query(queries - 1, 2, 2e38f);
  for (int64_t j = 0; j < keys; ++j) tested.set_key(j, 2, 7);
  const Tensor y = tested.run(path);
  EXPECT_FALSE(tested.is_finite(y.view(), queries - 1, 2));
  EXPECT_TRUE(tested.is_finite(y.view(), queries - 1, 1));
}

INSTANTIATE_TEST_SUITE_P(Paths, AttentionOverflow,
                         testing::Combine(testing::Values(Path::kFused, Path::kComposed),
                                          testing::Values(1, 3, 37), testing::Values(37, 599)),
                         [](const auto& suite) {
                           return (std::get<0>(suite.param) == Path::kFused ? "Fused" : "Composed") +
                                  std::to_string(std::get<1>(suite.param)) + "QueriesOf" +
                                  std::to_string(std::get<2>(suite.param)) + "Keys";
                         });

// A query that may see nothing has the output 0, as before.
TEST(AttentionWithoutKeys, AQueryThatSeesNothingIsZero) {
  OverflowCase tested(3, 5, Mask::none());
  const std::vector<uint64_t> words{~0ull, ~0ull, ~0ull, 0, ~0ull};
  tested.inputs.mask = Mask::dense({.words = words.data(), .words_per_row = 1});
  for (int64_t i = 0; i < 3; ++i) tested.set_query(i, 0, 2e38f);
  for (int64_t j = 0; j < 5; ++j) tested.set_key(j, 0, -7);
  for (const Path path : {Path::kFused, Path::kComposed}) {
    const Tensor y = tested.run(path);
    for (int c = 0; c < kHeads * kSize; ++c) EXPECT_EQ(y(3, c), 0);
    EXPECT_FALSE(tested.is_finite(y.view(), 0, 0));
    EXPECT_TRUE(tested.is_finite(y.view(), 0, 1));
  }
}

}  // namespace
}  // namespace mh

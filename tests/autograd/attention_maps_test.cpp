// The composed path of attention gives the same as the fused kernel, with dropout, gates and masks.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "multihead/autograd/attention_maps.h"
#include "multihead/autograd/gate_heads.h"
#include "multihead/base/ragged.h"
#include "multihead/tensor/tensor.h"
#include "tests/autograd/random_numbers.h"

namespace mh {
namespace {

struct Result {
  std::vector<float> output, dq, dk, dv, d_table, d_by_query, d_by_key, d_gates, weights;
};

void expect_pieces_of_the_kernel(std::optional<float> soft_cap) {
  constexpr int kHeads = 4, kKeyHeads = 2, kKey = 3, kValue = 5, kVectors = 4;
  const Ragged queries = Ragged::from_lengths(std::vector<int32_t>{3, 1, 6});
  const Ragged keys = Ragged::from_lengths(std::vector<int32_t>{4, 2, 7});
  Tensor q = test::random_matrix<float>(queries.rows(), kHeads * kKey, 1),
         k = test::random_matrix<float>(keys.rows(), kKeyHeads * kKey, 2),
         v = test::random_matrix<float>(keys.rows(), kValue, 3),
         seed = test::random_matrix<float>(queries.rows(), kHeads * kValue, 4),
         by_query = test::random_matrix<float>(queries.rows(), kHeads * kVectors, 5),
         by_key = test::random_matrix<float>(keys.rows(), kHeads * kVectors, 8);
  Tensor gates = test::random_matrix<float>(queries.sequences(), kHeads, 6);
  gates(1, 2) = 0;
  const std::vector<float> slopes = {0.5f, 0.25f, 0, 1};
  const std::vector<int32_t> buckets = {0, 2, 1, 2, 0, 1, 1};  // of the distances -3 ... 3
  const std::vector<int64_t> sentences = {7, 0, 3};
  AttentionInputs inputs;
  inputs.heads = kHeads;
  inputs.key_heads = kKeyHeads;
  inputs.d_key = kKey;
  inputs.d_value = kValue;
  inputs.query_offsets = queries.offsets();
  inputs.key_offsets = keys.offsets();
  inputs.scale = 0.4f;
  inputs.soft_cap = soft_cap;
  inputs.mask = Mask::causal();
  inputs.dropout = {
      .rate = 0.3f, .stream = dropout_stream(3, 4, 5), .offsets = queries.offsets(), .sentences = sentences};
  inputs.bias.slopes = slopes;
  inputs.bias.distance_clip = 3;
  inputs.bias.distance_columns = 3;
  inputs.bias.buckets = buckets;
  const std::vector<int32_t> vector_buckets = {3, 0, 2, 1, 2};  // of the distances -2 ... 2
  inputs.bias.vector_clip = 2;
  inputs.bias.vector_columns = kVectors;
  inputs.bias.vector_buckets = vector_buckets;
  const auto run = [&](bool composed) {
    Parameter table(kHeads, 3);
    for (int64_t i = 0; i < table.value.size(); ++i)
      table.value.data()[i] = 0.1f * static_cast<float>(i * i % 7);
    Tape tape(Tape::Mode::kRecord);
    using enum Tape::Gradient;
    const Var vq = tape.constant(q.view(), kWants), vk = tape.constant(k.view(), kWants),
              vv = tape.constant(v.view(), kWants), vb = tape.constant(by_query.view(), kWants),
              vc = tape.constant(by_key.view(), kWants), vg = tape.constant(gates.view(), kWants);
    const LearnedInputs learned{.by_distance = &table, .by_query = vb, .by_key = vc, .gates = vg};
    std::vector<float> weights(static_cast<size_t>(attention_weights_size(inputs)));
    Var y;
    if (composed) {
      const Var maps = softmax_maps(tape, attention_scores(tape, vq, vk, inputs, learned), inputs);
      std::copy_n(maps.value().data, weights.size(), weights.begin());
      y = gate_heads(tape, weigh_values(tape, drop_maps(tape, maps, inputs), vv, inputs), vg,
                     inputs.query_offsets);
    } else {
      y = attention(tape, vq, vk, vv, inputs, learned);
      AttentionInputs in = inputs;
      in.q = q.view(), in.k = k.view(), in.v = v.view();
      in.bias.by_query = by_query.view();
      in.bias.by_key = by_key.view();
      in.bias.by_distance = {table.value.data(), static_cast<size_t>(table.value.size())};
      Tensor unused(queries.rows(), kHeads * kValue);
      attention_forward(in, {.output = unused.view(), .lse = nullptr, .weights = weights.data()});
    }
    tape.seed(y, static_cast<const Tensor&>(seed).view());
    const auto numbers = [](ConstMatrixView m) { return std::vector<float>(m.data, m.data + m.size()); };
    Result result;
    result.output = numbers(y.value());
    result.weights = weights;
    tape.backward();
    result.dq = numbers(vq.gradient());
    result.dk = numbers(vk.gradient());
    result.dv = numbers(vv.gradient());
    result.d_by_query = numbers(vb.gradient());
    result.d_by_key = numbers(vc.gradient());
    result.d_gates = numbers(vg.gradient());
    result.d_table = numbers(table.gradient.view());
    return result;
  };
  const Result pieces = run(true), fused = run(false);
  const auto expect_near = [](const char* what, const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    float largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], 2e-5f) << what << " number " << i;
      largest = std::max(largest, std::abs(a[i]));
    }
    EXPECT_GT(largest, 0.01f) << what;
  };
  expect_near("output", pieces.output, fused.output);
  expect_near("weights", pieces.weights, fused.weights);
  expect_near("dq", pieces.dq, fused.dq);
  expect_near("dk", pieces.dk, fused.dk);
  expect_near("dv", pieces.dv, fused.dv);
  expect_near("d_by_query", pieces.d_by_query, fused.d_by_query);
  expect_near("d_by_key", pieces.d_by_key, fused.d_by_key);
  expect_near("d_gates", pieces.d_gates, fused.d_gates);
  expect_near("d_table", pieces.d_table, fused.d_table);
}

TEST(AttentionMaps, AreTheFusedKernelInPieces) {
  expect_pieces_of_the_kernel(std::nullopt);
  expect_pieces_of_the_kernel(0.6f);
}

}  // namespace
}  // namespace mh

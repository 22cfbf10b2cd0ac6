// Heads and sequences that lie elsewhere than side by side and end to end, against the reference in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "attention_case.h"
#include "on_target.h"
#include "tests/support/thread_sanitizer.h"

namespace mh {
namespace {

/// The order of the axes in memory, the outermost first.
enum class Order { kSequenceHeadToken, kSequenceTokenHead, kHeadSequenceToken, kTokenHead };
constexpr Order kOrders[] = {Order::kSequenceHeadToken, Order::kSequenceTokenHead, Order::kHeadSequenceToken,
                             Order::kTokenHead};

NumberStrides odd_strides(Order order, int64_t sequences, int64_t heads, int64_t tokens, int64_t size) {
  NumberStrides s;
  switch (order) {
    case Order::kSequenceHeadToken:
      s.token = size + 1;
      s.head = s.token * tokens + 3;
      s.sequence = s.head * heads + 5;
      return s;
    case Order::kSequenceTokenHead:
      s.head = size + 1;
      s.token = s.head * heads + 3;
      s.sequence = s.token * tokens + 5;
      return s;
    case Order::kHeadSequenceToken:
      s.token = size + 1;
      s.sequence = s.token * tokens + 3;
      s.head = s.sequence * sequences + 5;
      return s;
    case Order::kTokenHead:
      s.head = size + 1;
      s.token = s.head * heads + 3;
      return s;  // sequences end to end
  }
  return s;
}

/// Numbers of heads with odd strides; what lies between them is `filling`.
class Strided {
 public:
  Strided(Order order, std::span<const int32_t> offsets, int64_t heads, int64_t size, float filling)
      : offsets_(offsets.begin(), offsets.end()), heads_(heads), size_(size), filling_(filling) {
    const auto sequences = static_cast<int64_t>(offsets.size()) - 1;
    int64_t tokens = offsets.back();
    if (order != Order::kTokenHead) {
      tokens = 0;
      for (size_t s = 1; s < offsets.size(); ++s)
        tokens = std::max<int64_t>(tokens, offsets[s] - offsets[s - 1]);
    }
    strides = odd_strides(order, sequences, heads, tokens, size);
    memory_.assign(static_cast<size_t>(std::max({strides.sequence * sequences, strides.head * heads,
                                                 strides.token * std::max<int64_t>(tokens, 1)})),
                   filling);
  }
  HeadsView view() {
    return {MatrixView(memory_.data(), offsets_.back(), heads_ * size_, strides.token), strides.head,
            strides.sequence};
  }
  float* data() { return memory_.data(); }
  void take(ConstMatrixView plain) {
    for_each([&](float& x, int64_t row, int64_t column) { x = plain(row, column); });
  }
  void give(MatrixView plain) {
    for_each([&](float& x, int64_t row, int64_t column) { plain(row, column) = x; });
  }
  /// Whether nothing but its numbers was written; they are lost.
  bool clean_between() {
    for_each([&](float& x, int64_t, int64_t) { x = filling_; });
    return std::all_of(memory_.begin(), memory_.end(), [&](float x) { return x == filling_; });
  }
  NumberStrides strides;

 private:
  template <class Visit>
  void for_each(Visit visit) {
    for (size_t s = 0; s + 1 < offsets_.size(); ++s) {
      const int64_t first =
          strides.sequence == 0 ? offsets_[s] * strides.token : static_cast<int64_t>(s) * strides.sequence;
      for (int64_t row = offsets_[s]; row < offsets_[s + 1]; ++row) {
        for (int64_t c = 0; c < heads_ * size_; ++c) {
          const int64_t at =
              first + c / size_ * strides.head + (row - offsets_[s]) * strides.token + c % size_;
          visit(memory_[static_cast<size_t>(at)], row, c);
        }
      }
    }
  }
  std::vector<int32_t> offsets_;
  int64_t heads_, size_;
  float filling_;
  std::vector<float> memory_;
};

void expect_right(const AttentionCase& c, Order order, bool repeated_bias = false) {
  SCOPED_TRACE(testing::Message() << "order " << static_cast<int>(order) << " queries " << c.queries.size()
                                  << " of " << c.queries[0] << " keys " << c.keys[0] << " d " << c.d_key);
  AttentionProblem p(c);
  const AttentionInputs plain = p.in;
  const float nan = std::nanf("");
  Strided q(order, plain.query_offsets, c.heads, c.d_key, nan),
      k(order, plain.key_offsets, c.key_heads, c.d_key, nan),
      v(order, plain.key_offsets, c.value_heads, c.d_value, nan);
  q.take(plain.q), k.take(plain.k), v.take(plain.v);
  p.in.q = q.view(), p.in.k = k.view(), p.in.v = v.view();
  AttentionInputs described = plain;
  std::vector<float> dense, elements;
  if (repeated_bias) {  // of a head and key, the same for all sequences and queries
    int64_t longest = 0;
    for (const int32_t keys : c.keys) longest = std::max<int64_t>(longest, keys);
    for (int64_t i = 0; i < c.heads * (longest + 2); ++i)
      elements.push_back(static_cast<float>(std::sin(i * 1.7)));
    for (size_t s = 0; s < c.queries.size(); ++s) {
      for (int64_t h = 0; h < c.heads; ++h) {
        for (int64_t i = 0; i < c.queries[s]; ++i)
          dense.insert(dense.end(), elements.begin() + h * (longest + 2),
                       elements.begin() + h * (longest + 2) + c.keys[s]);
      }
    }
    described.bias.elements = dense;
    p.in.bias.elements = elements;
    p.in.bias.element_strides = {.sequence = 0, .head = longest + 2, .query = 0};
  }
  const auto x = reference::values_of(described);
  const auto want = reference::attention(described, x);
  Strided output(order, plain.query_offsets, c.heads, c.d_value, 77),
      lse(order, plain.query_offsets, c.heads, 1, 77);
  AttentionOutputs outputs{.output = output.view(), .lse = lse.data(), .lse_strides = lse.strides};
  if (lse.strides.sequence == 0) outputs.lse_strides = {}, outputs.lse = p.lse.data();
  attention_forward(p.in, outputs);
  output.give(p.output);
  if (lse.strides.sequence != 0) {
    lse.give({p.lse.data(), plain.q.rows, c.heads});
    Strided again = lse;
    EXPECT_TRUE(again.clean_between()) << "lse";
  }
  const int64_t longest = std::max<int64_t>(1, *std::max_element(c.keys.begin(), c.keys.end()));
  const double large = std::max(1.0, want.largest), gate = c.gates != GateChoice::kNone ? c.heads : 1;
  EXPECT_LE(worst(want.output, p.output), tolerance(large, c.d_key + longest) * large * gate);
  for (size_t i = 0; i < want.lse.size(); ++i) {
    if (std::isinf(want.lse[i])) {
      ASSERT_EQ(p.lse[i], -std::numeric_limits<float>::infinity());
    } else {
      ASSERT_NEAR(p.lse[i], want.lse[i], tolerance(large, c.d_key) + 1e-6);
    }
  }
  Strided d_output(order, plain.query_offsets, c.heads, c.d_value, nan),
      d_q(order, plain.query_offsets, c.heads, c.d_key, 77),
      d_k(order, plain.key_offsets, c.key_heads, c.d_key, 77),
      d_v(order, plain.key_offsets, c.value_heads, c.d_value, 77);
  d_output.take(p.d_output);
  attention_backward(p.in, {.output = output.view(),
                            .lse = outputs.lse,
                            .d_output = d_output.view(),
                            .d_q = d_q.view(),
                            .d_k = d_k.view(),
                            .d_v = d_v.view(),
                            .lse_strides = outputs.lse_strides});
  d_q.give(p.d_q), d_k.give(p.d_k), d_v.give(p.d_v);
  const auto g = reference::attention_gradients(described, x, reference::dense(p.d_output));
  const int64_t queries = *std::max_element(c.queries.begin(), c.queries.end());
  const int64_t group = c.heads / std::min(c.key_heads, c.value_heads);
  const double most = std::max(1.0, g.largest);
  const double terms = static_cast<double>(c.d_key + c.d_value + longest + queries * group);
  const double close = (8 + 2 * std::sqrt(terms)) * 0x1p-24 * most * most * gate;
  EXPECT_LE(worst(g.d_q, p.d_q), close);
  EXPECT_LE(worst(g.d_k, p.d_k), close * std::sqrt(static_cast<double>(group)));
  EXPECT_LE(worst(g.d_v, p.d_v), close * std::sqrt(static_cast<double>(group)));
  for (Strided* written : {&output, &d_q, &d_k, &d_v}) EXPECT_TRUE(written->clean_between());
}

class AttentionStrides : public testing::TestWithParam<std::string> {
  const OnTarget target_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Targets, AttentionStrides, testing::ValuesIn(dispatch_targets()),
                         [](const auto& target) { return target.param; });

TEST_P(AttentionStrides, GiveWhatTheReferenceGives) {
  for (const Order order : kOrders) {
    for (const auto& [queries, keys] : {std::pair<std::vector<int32_t>, std::vector<int32_t>>{{5}, {7}},
                                        {{3, 5, 2, 0, 1}, {7, 11, 13, 3, 5}},
                                        {{1, 1, 1}, {1, 2, 3}},
                                        {{1, 1}, {7, 307}},
                                        {{4}, {293}},
                                        {{19, 83}, {31, 131}},
                                        {{211}, {523}}}) {
      if (kThreadSanitizer && keys.front() > 31 && order != kOrders[0]) continue;
      AttentionCase c{.queries = queries,
                      .keys = keys,
                      .heads = 6,
                      .key_heads = 2,
                      .value_heads = 3,
                      .d_key = 5,
                      .d_value = 13};
      expect_right(c, order);
      c.mask = MaskChoice::kCausal;
      c.soft_cap = 3.0f;
      c.d_key = 17;
      expect_right(c, order);
      c.mask = MaskChoice::kNone;
      c.bias.elements = true;
      c.gates = GateChoice::kOfEach;
      expect_right(c, order);
      c.rate = 0.3f;
      expect_right(c, order, true);
    }
  }
}

TEST_P(AttentionStrides, OfABiasRepeatIt) {
  for (const auto& [queries, keys] : {std::pair<std::vector<int32_t>, std::vector<int32_t>>{{5, 3}, {7, 11}},
                                      {{1, 1}, {13, 307}},
                                      {{67}, {131}}}) {
    AttentionCase c{.queries = queries,
                    .keys = keys,
                    .heads = 3,
                    .key_heads = 3,
                    .value_heads = 1,
                    .d_key = 7,
                    .d_value = 11};
    c.bias.elements = true;
    for (const Order order : kOrders) expect_right(c, order, true);
  }
}

/// The message of a forward pass whose inputs `change` changed.
template <class Change>
std::string message_of(Change change) {
  AttentionProblem p({.queries = {3, 5},
                      .keys = {7, 11},
                      .heads = 4,
                      .key_heads = 2,
                      .value_heads = 2,
                      .d_key = 8,
                      .d_value = 8});
  AttentionOutputs out{.output = p.output, .lse = p.lse.data()};
  change(p, out);
  try {
    attention_forward(p.in, out);
  } catch (const ShapeError& e) {
    return e.what();
  }
  return "";
}

TEST(AttentionStrides, ThatOverlapAreErrors) {
  const std::vector<float> numbers(2 * 160, 0.0f);  // what the right strides reach
  const auto of_q = [&](int64_t token, int64_t head, int64_t sequence) {
    return message_of([&](AttentionProblem& p, AttentionOutputs&) {
      p.in.q = ConstHeadsView(ConstMatrixView(numbers.data(), 8, 32, token), head, sequence);
    });
  };
  const std::string overlap = "; places must not overlap";
  EXPECT_EQ(of_q(32, 7, 0),
            "attention_forward: q has a stride of 7 for each head, expected at least 8" + overlap);
  EXPECT_EQ(of_q(31, 8, 200),
            "attention_forward: q has a stride of 31 for each token, expected at least 32" + overlap);
  EXPECT_EQ(of_q(8, 39, 200),
            "attention_forward: q has a stride of 39 for each head, expected at least 40" + overlap);
  EXPECT_EQ(of_q(8, 40, 159),
            "attention_forward: q has a stride of 159 for each sequence, expected at least 160" + overlap);
  EXPECT_EQ(of_q(8, -40, 160),
            "attention_forward: q has a stride of -40 for each head, expected at least 8" + overlap);
  EXPECT_THAT(of_q(8, 40, std::numeric_limits<int64_t>::max()), testing::HasSubstr("which is too large"));
  EXPECT_EQ(of_q(8, 40, 160), "");
  EXPECT_EQ(message_of([](AttentionProblem&, AttentionOutputs& out) { out.output.head_stride = 3; }),
            "attention_forward: output has a stride of 3 for each head, expected at least 8" + overlap);
  EXPECT_EQ(message_of([](AttentionProblem&, AttentionOutputs& out) {
              out.lse_strides = {20, 5, 0};
            }),
            "attention_forward: lse_strides has a stride of 0 for each token, expected at least 1" + overlap);
  EXPECT_EQ(message_of([](AttentionProblem&, AttentionOutputs& out) {
              out.lse_strides = {20, 4, 1};
            }),
            "attention_forward: lse_strides has a stride of 4 for each head, expected at least 5" + overlap);
  const std::vector<int32_t> rows(18, 0);
  EXPECT_EQ(message_of([&](AttentionProblem& p, AttentionOutputs&) {
              p.in.key_rows = rows;
              p.in.k.sequence_stride = 1000;
            }),
            "attention_forward: key_rows is given; k and v then have no strides of heads and sequences");
}

TEST(AttentionStrides, OfABiasThatDoNotFitAreErrors) {
  const std::vector<float> numbers(100, 0.0f);
  const auto of_bias = [&](ElementStrides strides) {
    return message_of([&](AttentionProblem& p, AttentionOutputs&) {
      p.in.bias.elements = numbers;
      p.in.bias.element_strides = strides;
    });
  };
  EXPECT_EQ(of_bias({0, 0, 10}),
            "attention_forward: bias.element_strides.query is 10, expected 0 to repeat it or at least 11");
  EXPECT_EQ(of_bias({0, -1, 11}),
            "attention_forward: bias.element_strides.head is -1, expected 0 to repeat it or at least 1");
  EXPECT_EQ(of_bias({20, 11, 11}),
            "attention_forward: bias.elements has 100 numbers, expected the 108 that its strides reach");
  EXPECT_EQ(of_bias({12, 11, 11}), "");
}

}  // namespace
}  // namespace mh

// The fused kernel against the reference in double, and the reference against central differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "attention_case.h"
#include "on_target.h"
#include "tests/support/thread_sanitizer.h"

namespace mh {
namespace {

void expect_right(const AttentionCase& c) {
  SCOPED_TRACE(
      fmt::format("Tq {} Tk {} heads {}/{}/{} D {}/{} mask {} rate {} gate {} rows {} padding {} cap {}",
                  fmt::join(c.queries, ","), fmt::join(c.keys, ","), c.heads, c.key_heads, c.value_heads,
                  c.d_key, c.d_value, static_cast<int>(c.mask), c.rate, static_cast<int>(c.gates), c.by_rows,
                  c.padding, c.soft_cap.value_or(0)));
  AttentionProblem p(c);
  p.want_statistics();
  p.forward();
  const auto x = reference::values_of(p.in);
  const auto want = reference::attention(p.in, x, AttentionProblem::kDistances);
  const int64_t longest = std::max<int64_t>(1, *std::max_element(c.keys.begin(), c.keys.end()));
  const int64_t queries = *std::max_element(c.queries.begin(), c.queries.end());
  const double gate = c.gates != GateChoice::kNone ? c.heads : 1;
  // An error of the scores is one of the weights' logarithms: it counts as often as the values are large.
  const double bound =
      tolerance(std::max(1.0, want.largest), c.d_key + longest) * std::max(1.0, want.largest) * gate;
  EXPECT_LE(worst(want.output, p.output), bound);
  for (size_t i = 0; i < want.lse.size(); ++i) {
    if (std::isinf(want.lse[i])) {
      EXPECT_EQ(p.lse[i], -std::numeric_limits<float>::infinity());
    } else {
      EXPECT_NEAR(p.lse[i], want.lse[i], tolerance(std::max(1.0, want.largest), c.d_key) + 1e-6);
    }
  }
  for (size_t i = 0; i < want.weights.size(); ++i) {
    if (want.weights[i] == 0) {
      ASSERT_EQ(p.weights[i], 0.0f) << i;
    } else {
      ASSERT_NEAR(p.weights[i], want.weights[i], 2 * tolerance(std::max(1.0, want.largest), c.d_key)) << i;
    }
  }
  const double of_weight = 2 * tolerance(std::max(1.0, want.largest), c.d_key + longest);
  const auto reach = static_cast<double>(std::max<int64_t>(longest, queries));
  const auto expect_numbers = [](const char* name, const std::vector<float>& got,
                                 const std::vector<double>& numbers, double error) {
    ASSERT_EQ(got.size(), numbers.size()) << name;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (std::isinf(numbers[i])) {
        ASSERT_EQ(static_cast<double>(got[i]), numbers[i]) << name << " " << i;
      } else {
        ASSERT_NEAR(got[i], numbers[i], error) << name << " " << i;
      }
    }
  };
  expect_numbers("highest", p.highest, want.highest, tolerance(std::max(1.0, want.largest), c.d_key) + 1e-6);
  expect_numbers("entropy", p.entropy, want.entropy, of_weight * (4 + std::log(reach)));
  expect_numbers("position", p.expected_position, want.expected_position, of_weight * reach);
  expect_numbers("distance", p.expected_distance, want.expected_distance, of_weight * reach);
  expect_numbers("mass", p.mass, want.mass, of_weight);
  for (int64_t i = 0; c.padding > 0 && i < p.output.rows; ++i) {
    ASSERT_EQ(p.output.row(i)[p.output.cols], 77.0f) << "wrote between the rows";
  }
  if (c.by_rows) return;
  p.backward();
  const auto g = reference::attention_gradients(p.in, x, reference::dense(p.d_output));
  const int64_t group = c.heads / std::min(c.key_heads, c.value_heads);
  const double most = std::max(1.0, g.largest);
  const double terms = static_cast<double>(c.d_key + c.d_value + longest + queries * group);
  const double close = (8 + 2 * std::sqrt(terms)) * 0x1p-24 * most * most * gate;
  EXPECT_LE(worst(g.d_q, p.d_q), close);
  EXPECT_LE(worst(g.d_k, p.d_k), close * std::sqrt(static_cast<double>(group)));
  EXPECT_LE(worst(g.d_v, p.d_v), close * std::sqrt(static_cast<double>(group)));
  const auto d_gate = reference::gates_in_rows(g.d_gate, c.heads, p.d_gate_view.rows);
  ASSERT_EQ(p.d_gate.size(), d_gate.size());
  for (size_t i = 0; i < d_gate.size(); ++i) {
    EXPECT_NEAR(p.d_gate[i], d_gate[i], close * std::sqrt(static_cast<double>(1 + p.in.q.rows * c.d_value)));
  }
  const double sums = close * std::sqrt(static_cast<double>(1 + p.in.q.rows)) * reach;
  expect_numbers("d_slopes", p.d_slopes, g.slopes, sums * reach);
  expect_numbers("d_by_distance", p.d_by_distance, g.by_distance, sums);
  expect_numbers("d_elements", p.d_elements, g.elements, close);
  EXPECT_LE(worst(g.by_query, p.d_bias.by_query), close * std::sqrt(reach));
  EXPECT_LE(worst(g.by_key, p.d_bias.by_key), close * std::sqrt(reach));
  for (int64_t i = 0; c.padding > 0 && i < p.d_k.rows; ++i) {
    ASSERT_EQ(p.d_k.row(i)[p.d_k.cols], 77.0f) << "wrote between the rows";
  }
}

void expect_central_differences(std::optional<float> soft_cap) {
  AttentionCase c;
  c.soft_cap = soft_cap;
  c.queries = {3, 5};
  c.keys = {4, 5};
  c.heads = 4;
  c.key_heads = 2;
  c.value_heads = 1;
  c.d_key = 3;
  c.d_value = 2;
  c.mask = MaskChoice::kDense;
  c.rate = 0.3f;
  c.gates = GateChoice::kOfEach;
  c.bias = {.slopes = true,
            .by_distance = true,
            .buckets = true,
            .elements = true,
            .by_query = true,
            .by_key = true};
  AttentionProblem p(c);
  auto x = reference::values_of(p.in);
  const auto d_output = reference::dense(p.d_output);
  const auto g = reference::attention_gradients(p.in, x, d_output);
  const auto loss = [&] {
    const auto y = reference::attention(p.in, x).output;
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * d_output[i];
    return sum;
  };
  const auto check = [&](const char* name, std::vector<double>& values, const std::vector<double>& gradient) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double kept = values[i], step = 1e-5;
      values[i] = kept + step;
      const double up = loss();
      values[i] = kept - step;
      const double down = loss();
      values[i] = kept;
      ASSERT_NEAR((up - down) / (2 * step), gradient[i], 1e-8) << name << " " << i;
    }
  };
  check("q", x.q, g.d_q);
  check("k", x.k, g.d_k);
  check("v", x.v, g.d_v);
  check("gate", x.gate, g.d_gate);
  check("slopes", x.slopes, g.slopes);
  check("by_distance", x.by_distance, g.by_distance);
  check("elements", x.elements, g.elements);
  check("by_query", x.by_query, g.by_query);
  check("by_key", x.by_key, g.by_key);
}

TEST(AttentionReference, GradientsAreCentralDifferences) {
  expect_central_differences(std::nullopt);
  expect_central_differences(0.75f);
}

class AttentionOnTarget : public testing::TestWithParam<std::string> {
  const OnTarget target_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Targets, AttentionOnTarget, testing::ValuesIn(dispatch_targets()),
                         [](const auto& target) { return target.param; });

const int kLengths[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 5, 6, 7};
const int kSizes[] = {1, 3, 8, 16, 31, 32, 33, 64, 80, 128};

TEST_P(AttentionOnTarget, EveryLengthAroundTheTileEdges) {
  for (const int tq : kLengths) {
    for (const int tk : {tq, (tq * 7 + 3) % 131}) {
      AttentionCase c;
      c.queries = {3, tq};
      c.keys = {2, tk};
      c.d_key = 5;
      c.d_value = 18;
      c.mask = tq % 2 ? MaskChoice::kCausal : MaskChoice::kNone;
      expect_right(c);
    }
  }
}

TEST_P(AttentionOnTarget, EveryHeadSize) {
  for (const int size : kSizes) {
    AttentionCase c;
    c.queries = {19, 3, 1};
    c.keys = {23, 37, 11};
    c.d_key = size;
    c.d_value = size == 1 ? 7 : size;
    expect_right(c);
    std::swap(c.d_key, c.d_value);
    c.by_rows = true;
    c.padding = 5;
    expect_right(c);
  }
}

TEST_P(AttentionOnTarget, FeaturesCrossed) {
  Random random(17);
  const MaskChoice masks[] = {MaskChoice::kNone, MaskChoice::kCausal, MaskChoice::kCausalTopLeft,
                              MaskChoice::kWindow, MaskChoice::kDense};
  const int heads[][3] = {{4, 4, 4}, {4, 2, 4}, {4, 1, 2}, {6, 2, 3}, {6, 1, 1}, {1, 1, 1}, {6, 6, 1}};
  for (int n = 0; n < 60; ++n) {
    AttentionCase c;
    c.seed = random.bits();
    c.queries.clear();
    c.keys.clear();
    const uint32_t sequences = 1 + random.below(4);
    for (uint32_t s = 0; s < sequences; ++s) {
      c.queries.push_back(random.below(3) ? static_cast<int>(random.below(40)) : kLengths[random.below(18)]);
      c.keys.push_back(random.below(2) ? c.queries.back() : static_cast<int>(random.below(140)));
    }
    const auto& h = heads[random.below(7)];
    c.heads = h[0];
    c.key_heads = h[1];
    c.value_heads = h[2];
    c.d_key = kSizes[random.below(10)];
    c.d_value = random.below(2) ? c.d_key : kSizes[random.below(10)];
    c.mask = masks[random.below(5)];
    c.rate = random.below(3) == 0 ? 0.25f : 0;
    if (random.below(4) == 0) c.gates = c.queries.size() % 2 == 0 ? GateChoice::kOfEach : GateChoice::kOfAll;
    c.by_rows = random.below(4) == 0 && *std::max_element(c.keys.begin(), c.keys.end()) > 0;
    c.padding = random.below(2) ? 0 : 1 + random.below(40);
    expect_right(c);
  }
}

TEST_P(AttentionOnTarget, AHandfulOfPairs) {
  const int heads[][3] = {{4, 4, 4}, {6, 2, 3}, {4, 1, 2}};
  const MaskChoice masks[] = {MaskChoice::kNone, MaskChoice::kCausal, MaskChoice::kCausalTopLeft,
                              MaskChoice::kWindow, MaskChoice::kDense};
  int n = 0;
  for (const int queries : {1, 2, 3, 4, 9}) {
    for (const int keys : {1, 2, 3, 5, 9}) {
      for (const MaskChoice mask : masks) {
        AttentionCase c;
        c.queries = {queries, 3};
        c.keys = {keys, 3};
        const auto& h = heads[n % 3];
        c.heads = h[0];
        c.key_heads = h[1];
        c.value_heads = h[2];
        c.d_key = kSizes[n % 10];
        c.d_value = kSizes[(n + 3) % 10];
        c.mask = mask;
        c.padding = n % 4 == 1 ? 9 : 0;
        ++n;
        expect_right(c);
      }
    }
  }
}

/// Each pair of biases, and each with each mask, dropout, gates, rows; lengths around the edges of tiles.
TEST_P(AttentionOnTarget, BiasesCrossed) {
  const int lengths[] = {1, 2, 15, 17, 33, 64, 67, 129, 131};
  const MaskChoice masks[] = {MaskChoice::kNone, MaskChoice::kCausal, MaskChoice::kCausalTopLeft,
                              MaskChoice::kWindow, MaskChoice::kDense};
  for (int n = 0; n < 60; ++n) {
    AttentionCase c;
    c.seed = static_cast<uint64_t>(n) + 100;
    c.queries = {lengths[n % 9], 3};
    c.keys = {n % 4 == 3 ? 400 : lengths[(n * 4 + 1) % 9], 7};
    c.heads = 4;
    c.key_heads = n % 3 == 0 ? 2 : 4;
    c.value_heads = n % 3 == 1 ? 1 : 4;
    c.d_key = n % 2 ? 8 : 5;
    c.d_value = n % 2 ? 19 : 16;
    c.mask = masks[n % 5];
    c.rate = n % 7 == 0 ? 0.25f : 0;
    if (n % 11 == 0) c.gates = n % 2 == 0 ? GateChoice::kOfEach : GateChoice::kOfAll;
    c.by_rows = n % 13 == 0;
    c.padding = n % 6 == 0 ? 3 : 0;
    c.bias.slopes = n & 1;
    c.bias.by_distance = n & 2;
    c.bias.buckets = n & 16;
    c.bias.elements = n & 4;
    c.bias.by_query = n & 8;
    c.bias.by_key = n & 4;
    expect_right(c);
  }
}

/// Capped scores with everything else, in every kernel: a few pairs, strips of a chunk and of several, a long cache.
TEST_P(AttentionOnTarget, SoftCapsCrossed) {
  const int lengths[] = {1, 2, 3, 5, 7, 17, 31, 61, 67, 131, 257};
  const MaskChoice masks[] = {MaskChoice::kNone, MaskChoice::kCausal, MaskChoice::kCausalTopLeft,
                              MaskChoice::kWindow, MaskChoice::kDense};
  const int heads[][3] = {{4, 4, 4}, {6, 2, 3}, {4, 1, 2}};
  const float caps[] = {0.3f, 50, 1.5f, 5, 1e6f};
  for (int n = 0; n < 99; n += kThreadSanitizer ? 4 : 1) {
    AttentionCase c;
    c.seed = static_cast<uint64_t>(n) + 300;
    c.soft_cap = caps[n % 5];
    c.queries = {lengths[n % 11], 3, 13};
    c.keys = {n % 7 == 3 ? 521 : lengths[(n * 4 + 1) % 11], 3, 7};
    c.heads = heads[n % 3][0];
    c.key_heads = heads[n % 3][1];
    c.value_heads = heads[n % 3][2];
    c.d_key = kSizes[n % 10];
    c.d_value = kSizes[(n + 3) % 10];
    c.mask = masks[(n / 2) % 5];
    c.rate = n % 8 == 5 ? 0.25f : 0;
    if (n % 9 == 4) c.gates = n % 2 == 0 ? GateChoice::kOfEach : GateChoice::kOfAll;
    c.by_rows = n % 6 == 5;
    c.padding = n % 4 == 1 ? 9 : 0;
    c.bias.slopes = n % 4 == 3;
    c.bias.by_distance = n % 5 == 4;
    c.bias.elements = n % 12 == 6;
    c.bias.by_query = n % 12 == 7;
    c.bias.by_key = n % 6 == 1;
    expect_right(c);
  }
}

TEST_P(AttentionOnTarget, AFewQueriesAgainstALongCache) {
  const int heads[][3] = {{4, 4, 4}, {6, 2, 3}, {5, 1, 1}, {8, 2, 2}};
  const MaskChoice masks[] = {MaskChoice::kNone, MaskChoice::kCausal, MaskChoice::kCausalTopLeft,
                              MaskChoice::kWindow, MaskChoice::kDense};
  int n = 0;
  for (const int keys : {255, 256, 257, 511, 769}) {
    for (const auto& h : heads) {
      AttentionCase c;
      c.queries = {1 + n % 6, 2, 1 + n % 3};
      c.keys = {keys, 5, 300};
      c.heads = h[0];
      c.key_heads = h[1];
      c.value_heads = h[2];
      c.d_key = kSizes[n % 10];
      c.d_value = kSizes[(n + 3) % 10];
      c.mask = masks[n % 5];
      if (n % 3 == 0) c.gates = n % 2 == 0 ? GateChoice::kOfEach : GateChoice::kOfAll;
      c.by_rows = n % 2 == 0;
      c.padding = n % 4 == 1 ? 9 : 0;
      c.bias.slopes = n % 3 == 1;
      c.bias.by_distance = n % 5 == 1;
      c.bias.elements = n % 7 == 2;
      c.bias.by_query = n % 4 == 3;
      c.bias.by_key = n % 4 >= 2;
      ++n;
      expect_right(c);
    }
  }
}

TEST(SlowAttention, LargeHeadsAndLongSequences) {
  AttentionCase c;
  c.queries = {9};
  c.keys = {21};
  c.d_key = 1024;
  c.d_value = 1023;
  expect_right(c);
  c = {};
  c.queries = {1030, 267};
  c.keys = {1030, 641};
  c.d_key = c.d_value = 8;
  for (const auto mask : {MaskChoice::kNone, MaskChoice::kCausal, MaskChoice::kWindow, MaskChoice::kDense}) {
    c.mask = mask;
    c.rate = mask == MaskChoice::kCausal ? 0.1f : 0;
    expect_right(c);
    c.bias = {.slopes = true, .by_distance = true, .by_query = true, .by_key = true};
    expect_right(c);
    c.bias = {};
    c.soft_cap = 2;
    expect_right(c);
    c.soft_cap = {};
  }
  c.queries = {2, 3};
  c.keys = {9001, 641};
  expect_right(c);
}

TEST(Attention, NoSequencesAndEmptyOnes) {
  AttentionCase c;
  c.queries = {0, 0, 3};
  c.keys = {0, 4, 0};  // keys without queries have gradients of 0; queries without keys put out 0
  expect_right(c);
  c.queries = {0};
  c.keys = {0};
  expect_right(c);
  AttentionInputs in;
  const std::vector<int32_t> none{0};
  in.d_key = in.d_value = 4;
  in.q.cols = in.k.cols = in.v.cols = 4;
  in.query_offsets = in.key_offsets = none;
  MatrixView output;
  output.cols = 4;
  attention_forward(in, {output});
}

TEST(Attention, ScoresOfAnySizeStayFinite) {
  AttentionCase c;
  c.queries = c.keys = {21};
  c.d_key = 16;
  AttentionProblem p(c);
  for (const float size : {1e4f, 0.0f, 1e15f}) {
    for (int64_t i = 0; i < 21; ++i) {
      for (int64_t j = 0; j < p.in.q.cols; ++j) p.q()(i, j) = i == 4 ? 0 : size;
      for (int64_t j = 0; j < p.in.k.cols; ++j) p.k()(i, j) = i % 2 ? 1.0f : -1.0f;
    }
    p.forward();
    p.backward();
    for (int64_t i = 0; i < 21; ++i) {
      for (int64_t j = 0; j < p.output.cols; ++j) ASSERT_TRUE(std::isfinite(p.output(i, j))) << size;
      for (int64_t j = 0; j < p.d_q.cols; ++j)
        ASSERT_TRUE(std::isfinite(p.d_q(i, j)) && std::isfinite(p.d_k(i, j)));
    }
  }
  // One visible key far below all: its weight is 0, its row does no harm.
  p.q()(0, 0) = 1e19f;
  p.k()(3, 0) = -1e19f;
  p.forward();
  for (int64_t j = 0; j < p.output.cols; ++j) ASSERT_TRUE(std::isfinite(p.output(0, j)));
}

TEST(Attention, AFarCapIsNone) {
  AttentionCase c;
  c.queries = {3, 43};
  c.keys = {11, 307};
  AttentionProblem without(c);
  c.soft_cap = 1e6f;
  AttentionProblem with(c);
  for (AttentionProblem* p : {&without, &with}) p->forward(), p->backward();
  const auto expect_near = [](ConstMatrixView a, ConstMatrixView b) {
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.cols; ++j) ASSERT_NEAR(a(i, j), b(i, j), 5e-6) << i << " " << j;
    }
  };
  expect_near(with.output, without.output);
  expect_near(with.d_q, without.d_q);
  expect_near(with.d_k, without.d_k);
  expect_near(with.d_v, without.d_v);
}

TEST(Attention, CappedScoresOfAnySizeStayBelowTheCap) {
  AttentionCase c;
  c.queries = {2, 37};
  c.keys = {5, 41};
  c.d_key = 16;
  c.soft_cap = 7;
  AttentionProblem p(c);
  p.want_statistics();
  for (const float size : {30.0f, 1e6f, 1e30f}) {
    for (int64_t i = 0; i < p.in.q.rows; ++i) {
      for (int64_t j = 0; j < p.in.q.cols; ++j) p.q()(i, j) = i % 3 == 1 ? 0.01f : size;
    }
    p.forward();
    p.backward();
    for (const float highest : p.highest) ASSERT_LE(highest, 7.0f * (1 + 1e-6f));
    for (int64_t i = 0; i < p.in.q.rows; ++i) {
      for (int64_t j = 0; j < p.output.cols; ++j) ASSERT_TRUE(std::isfinite(p.output(i, j))) << size;
      for (int64_t j = 0; j < p.d_q.cols; ++j) ASSERT_TRUE(std::isfinite(p.d_q(i, j))) << size;
    }
  }
}

TEST(Attention, WantingMoreDoesNotChangeTheOutput) {
  AttentionCase c;
  c.queries = {3, 40};
  c.keys = {9, 51};
  AttentionProblem all(c), little(c);
  all.forward(true);
  attention_forward(little.in, {little.output});
  for (int64_t i = 0; i < all.output.rows; ++i) {
    for (int64_t j = 0; j < all.output.cols; ++j) ASSERT_EQ(all.output(i, j), little.output(i, j));
  }
}

TEST(Attention, ABatchEqualsEachSentenceAlone) {
  AttentionCase c;
  c.queries = {3, 40, 17};
  c.keys = {9, 51, 17};
  c.mask = MaskChoice::kCausal;
  c.rate = 0.2f;
  AttentionProblem p(c);
  p.forward();
  for (size_t s = 0; s < 3; ++s) {
    const int32_t tq = c.queries[s], tk = c.keys[s];
    AttentionInputs one = p.in;
    const std::vector<int32_t> queries{0, tq}, keys{0, tk};
    one.q = p.in.q.rows_between(p.in.query_offsets[s], p.in.query_offsets[s + 1]);
    one.k = p.in.k.rows_between(p.in.key_offsets[s], p.in.key_offsets[s + 1]);
    one.v = p.in.v.rows_between(p.in.key_offsets[s], p.in.key_offsets[s + 1]);
    one.query_offsets = queries;
    one.key_offsets = keys;
    one.dropout.sentences = p.in.dropout.sentences.subspan(s, 1);
    std::vector<float> data(static_cast<size_t>(tq * p.output.cols));
    const MatrixView output(data.data(), tq, p.output.cols);
    attention_forward(one, {output});
    for (int64_t i = 0; i < tq; ++i) {
      for (int64_t j = 0; j < output.cols; ++j)
        ASSERT_EQ(output(i, j), p.output(p.in.query_offsets[s] + i, j));
    }
  }
}

}  // namespace
}  // namespace mh

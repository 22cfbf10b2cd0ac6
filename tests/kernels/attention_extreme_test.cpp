// Attention at its limits: all tile edges and head sizes in front of a guard page, very large scores, NaN
// behind every mask, more than 2^31 scores, and the same bits every time.
#include <gtest/gtest.h>

#include <cfloat>
#include <cstring>
#include <numeric>

#include "attention_try.h"
#include "multihead/base/thread_pool.h"

namespace mh {
namespace {

void expect_right(const AttentionDescription& d) {
  const GuardedAttention p(d);
  try {
    try_possible(p, std::numeric_limits<int64_t>::max());
  } catch (const Wrong& e) {
    ADD_FAILURE() << e.what();
  }
}

const int kHeadSizes[] = {1, 3, 7, 8, 31, 33, 64, 65, 127};

TEST(AttentionExtreme, EveryTileEdgeWithEveryHeadSize) {
  const int edges[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  int n = 0;
  for (const int size : kHeadSizes) {
    for (const int length : edges) {
      const int other = edges[(n + 4) % 15];
      AttentionDescription d{.queries = {length}, .keys = {n % 3 == 0 ? length : other}};
      d.d_key = size;
      d.d_value = n % 2 == 0 ? size : kHeadSizes[n % 9];
      d.scale = attention_scale(size);
      if (n % 5 == 1) d.mask = Mask::causal();
      if (n % 5 == 2) d.mask = Mask::window(16, 31);
      if (n % 5 == 3) d.mask = Mask::causal_top_left();
      if (n % 5 == 4) d.density = 1;
      d.poison = true;
      expect_right(d);
      ++n;
    }
  }
}

TEST(SlowAttentionExtreme, LongPrimesWithEveryMask) {
  for (const int size : {7, 65}) {
    for (int mask = 0; mask < 5; ++mask) {
      AttentionDescription d{.queries = {267}, .keys = {mask % 2 == 0 ? 1030 : 131}};
      d.d_key = d.d_value = size;
      d.scale = attention_scale(size);
      if (mask == 1) d.mask = Mask::causal();
      if (mask == 2) d.mask = Mask::causal_top_left();
      if (mask == 3) d.mask = Mask::window(100, 3);
      if (mask == 4) d.density = 1;
      d.poison = true;
      expect_right(d);
    }
  }
}

bool finite(ConstMatrixView view) {
  for (int64_t i = 0; i < view.rows; ++i) {
    if (!std::all_of(view.row(i), view.row(i) + view.cols, [](float x) { return std::isfinite(x); }))
      return false;
  }
  return true;
}

/// Problems whose scores are known exactly: q is `q` and key j is `scores[j] / q` in the first number, 0 in
/// the others. The weights follow without rounding.
void expect_weights(float q, const std::vector<float>& scores, const std::vector<double>& weights) {
  const auto keys = static_cast<int32_t>(scores.size());
  for (const int size : {1, 8, 65}) {
    for (const int queries : {1, 5, 67}) {
      SCOPED_TRACE(fmt::format("{} queries, {} keys, d {}", queries, keys, size));
      AttentionDescription d{.queries = {queries}, .keys = {keys}};
      d.d_key = d.d_value = size;
      const GuardedAttention p(d);
      for (int64_t i = 0; i < queries; ++i) {
        std::fill_n(p.q.row(i), size, 0.0f);
        p.q(i, 0) = q;
      }
      for (int64_t j = 0; j < keys; ++j) {
        std::fill_n(p.k.row(j), size, 0.0f);
        p.k(j, 0) = scores[static_cast<size_t>(j)] / q;
      }
      p.run();
      for (int64_t c = 0; c < size; ++c) {
        double want = 0;
        for (int64_t j = 0; j < keys; ++j)
          want += weights[static_cast<size_t>(j)] * static_cast<double>(p.v(j, c));
        for (int64_t i = 0; i < queries; ++i) ASSERT_NEAR(p.out.output(i, c), want, 2e-6) << i << " " << c;
      }
      for (int64_t j = 0; j < keys; ++j) {
        ASSERT_NEAR(p.out.weights[j], weights[static_cast<size_t>(j)], 1e-7) << j;
      }
      for (const MatrixView& view : {p.gradients.d_q, p.gradients.d_k, p.gradients.d_v})
        EXPECT_TRUE(finite(view));
    }
  }
}

TEST(AttentionExtreme, ScoresOfTenThousand) {
  for (const int keys : {3, 33, 200}) {
    std::vector<float> scores(static_cast<size_t>(keys));
    std::vector<double> weights(scores.size());
    for (size_t j = 0; j < scores.size(); ++j) {
      scores[j] = j % 3 == 1 ? 1e4f : -1e4f;  // the largest ones share the weight
      weights[j] = j % 3 == 1 ? 1.0 / ((keys + 1) / 3) : 0;
    }
    expect_weights(100, scores, weights);
    // Growing from key to key: the running maximum is beaten every time.
    for (size_t j = 0; j < scores.size(); ++j) scores[j] = 1e4f * static_cast<float>(j) / 256;
    std::fill(weights.begin(), weights.end(), 0.0);
    weights.back() = 1;
    for (size_t j = 0; j + 1 < weights.size(); ++j) {
      weights[j] = std::exp(-1e4 / 256 * static_cast<double>(weights.size() - 1 - j));
    }
    expect_weights(1, scores, weights);
  }
}

TEST(AttentionExtreme, EqualScores) {
  for (const int keys : {1, 2, 17, 64, 257}) {
    for (const float score : {0.0f, 1e4f, -1e4f, 1e30f, -1e30f}) {
      expect_weights(1, std::vector<float>(static_cast<size_t>(keys), score),
                     std::vector<double>(static_cast<size_t>(keys), 1.0 / keys));
    }
  }
}

TEST(AttentionExtreme, OneScoreAtTheEndOfTheRange) {
  for (const int keys : {2, 17, 64, 257}) {
    for (const int at : {0, keys / 2, keys - 1}) {
      const auto n = static_cast<size_t>(keys), place = static_cast<size_t>(at);
      std::vector<float> scores(n, 1.0f);
      std::vector<double> weights(n, 1.0 / (keys - 1));
      scores[place] = -FLT_MAX;
      weights[place] = 0;
      expect_weights(1, scores, weights);
      scores[place] = FLT_MAX / 4;
      std::fill(weights.begin(), weights.end(), 0.0);
      weights[place] = 1;
      expect_weights(1, scores, weights);
    }
  }
}

/// Key `at` holds a poison that spreads: no query that may not see it may differ by a bit from the same query
/// without the poison, forward or backward.
TEST(AttentionExtreme, PoisonStaysBehindEveryMaskInTilesThatItCuts) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (const int length : {5, 33, 70, 300}) {
    for (int mask = 0; mask < 4; ++mask) {
      AttentionDescription d{
          .queries = {length}, .keys = {length + 7}, .heads = 2, .key_heads = 1, .value_heads = 2};
      d.d_key = 8;
      d.d_value = 19;
      d.scale = attention_scale(8);
      if (mask == 0) d.mask = Mask::causal();
      if (mask == 1) d.mask = Mask::causal_top_left();
      if (mask == 2) d.mask = Mask::window(length / 3, 2);
      if (mask == 3) d.density = 1;
      if (length % 2 == 0) d.soft_cap = 3;
      const GuardedAttention good(d);
      good.run();
      for (const float poison : {nan, infinity, -infinity, FLT_MAX}) {
        for (const int at : {1, length / 2, length - 1}) {
          SCOPED_TRACE(fmt::format("{} poison {} in key {}", good.text(), poison, at));
          const GuardedAttention bad(d);
          std::fill_n(bad.k.row(at), bad.k.cols, poison);
          std::fill_n(bad.v.row(at), bad.v.cols, poison);
          bad.run();
          int blind = 0;
          for (int64_t i = 0; i < length; ++i) {
            if (bad.in.mask.allows(i, i, at, length, length + 7)) continue;
            ++blind;
            const auto same = [&](ConstMatrixView a, ConstMatrixView b) {
              return std::memcmp(a.row(i), b.row(i), static_cast<size_t>(a.cols) * sizeof(float)) == 0;
            };
            ASSERT_TRUE(same(bad.out.output, good.out.output)) << i;
            ASSERT_TRUE(same(bad.gradients.d_q, good.gradients.d_q)) << i;
            ASSERT_EQ(bad.out.lse[2 * i], good.out.lse[2 * i]) << i;
          }
          if (!std::isfinite(poison) && blind < length) {
            EXPECT_FALSE(finite(bad.out.output)) << "what is visible surfaces";
          }
        }
      }
    }
  }
}

TEST(AttentionExtreme, TheSameBitsInTwentyRunsOnAnyNumberOfThreads) {
  std::vector<AttentionDescription> shapes;
  shapes.push_back(
      {.queries = {1}, .keys = {1031}, .heads = 6, .key_heads = 2, .value_heads = 2});  // decoding
  shapes.push_back({.queries = {401}, .keys = {401}, .heads = 2, .key_heads = 1, .value_heads = 2});
  shapes.back().mask = Mask::causal();
  shapes.back().rate = 0.1f;
  shapes.push_back({.heads = 3, .key_heads = 3, .value_heads = 3});  // many short ones
  for (int s = 0; s < 60; ++s) shapes.back().queries.push_back(1 + s * 7 % 31);
  shapes.back().keys = shapes.back().queries;
  shapes.back().gate = {1.0f, 0.5f, 0.0f};
  shapes.push_back(
      {.queries = {3, 157, 0, 64}, .keys = {1000, 65, 9, 0}, .heads = 4, .key_heads = 4, .value_heads = 1});
  shapes.back().density = 1;
  for (const size_t capped : {0, 1, 2}) {
    shapes.push_back(shapes[capped]);
    shapes.back().soft_cap = 1.5f;
  }
  const int before = thread_count();
  for (auto& d : shapes) {
    d.d_key = 33;
    d.d_value = 40;
    d.weights = d.queries.size() != 60;
    std::vector<float> first;
    for (int run = 0; run < 20; ++run) {
      set_thread_count(std::vector{1, 2, 3, 7}[static_cast<size_t>(run % 4)]);
      const GuardedAttention p(d);
      p.run();
      const auto results = p.results();
      if (first.empty()) first = results;
      ASSERT_EQ(std::memcmp(first.data(), results.data(), first.size() * sizeof(float)), 0)
          << p.text() << " run " << run;
    }
  }
  set_thread_count(before);
}

/// softmax in double of one query over all keys; returns lse.
double weights_of(const GuardedAttention& p, int64_t i, std::vector<double>& weights) {
  weights.assign(static_cast<size_t>(p.k.rows), 0);
  for (int64_t j = 0; j < p.k.rows; ++j) {
    double sum = 0;
    for (int64_t c = 0; c < p.k.cols; ++c)
      sum += static_cast<double>(p.q(i, c)) * static_cast<double>(p.k(j, c));
    weights[static_cast<size_t>(j)] = sum * static_cast<double>(p.in.scale);
  }
  const double most = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& w : weights) sum += w = std::exp(w - most);
  for (double& w : weights) w /= sum;
  return most + std::log(sum);
}

TEST(SlowAttentionExtreme, MoreScoresThanTwoToThe31) {
  constexpr int kLength = 46341, kSize = 8;
  static_assert(int64_t{kLength} * kLength > int64_t{1} << 31);
  AttentionDescription d{.queries = {kLength}, .keys = {kLength}};
  d.d_key = d.d_value = kSize;
  d.scale = attention_scale(kSize);
  d.weights = false;
  const GuardedAttention p(d);
  p.run();
  ASSERT_EQ(p.written_elsewhere(), "");
  std::vector<double> weights;
  for (int n = 0; n < 64; ++n) {
    const int64_t i = n == 0 ? 0 : n == 1 ? kLength - 1 : int64_t{n} * 719 % kLength;
    const double lse = weights_of(p, i, weights);
    ASSERT_NEAR(p.out.lse[i], lse, 2e-5) << i;
    double output[kSize] = {}, d_q[kSize] = {}, delta = 0;
    for (int64_t j = 0; j < kLength; ++j) {
      for (int64_t c = 0; c < kSize; ++c)
        output[c] += weights[static_cast<size_t>(j)] * static_cast<double>(p.v(j, c));
    }
    for (int64_t c = 0; c < kSize; ++c) {
      ASSERT_NEAR(p.out.output(i, c), output[c], 2e-6) << i << " " << c;
      delta += output[c] * static_cast<double>(p.gradients.d_output(i, c));
    }
    for (int64_t j = 0; j < kLength; ++j) {
      double d_weight = 0;
      for (int64_t c = 0; c < kSize; ++c) {
        d_weight += static_cast<double>(p.gradients.d_output(i, c)) * static_cast<double>(p.v(j, c));
      }
      const double d_score =
          weights[static_cast<size_t>(j)] * (d_weight - delta) * static_cast<double>(p.in.scale);
      for (int64_t c = 0; c < kSize; ++c) d_q[c] += d_score * static_cast<double>(p.k(j, c));
    }
    for (int64_t c = 0; c < kSize; ++c) ASSERT_NEAR(p.gradients.d_q(i, c), d_q[c], 2e-5) << i << " " << c;
  }
  // Every query pays into the gradient of V: column sums of the weights are 1 together.
  for (int64_t c = 0; c < kSize; ++c) {
    double all = 0, paid = 0;
    for (int64_t i = 0; i < kLength; ++i) {
      all += static_cast<double>(p.gradients.d_v(i, c));
      paid += static_cast<double>(p.gradients.d_output(i, c));
    }
    EXPECT_NEAR(all, paid, 2e-2) << c;
  }
}

}  // namespace
}  // namespace mh

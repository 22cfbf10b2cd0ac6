#include "multihead/train/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/base/thread_pool.h"

namespace mh {
namespace {

// Algorithm 1 of Kingma and Ba as printed, in double, with the decay of AdamW.
struct ReferenceAdam {
  AdamOptions options;
  std::vector<double> w, m, v;
  void update(int t, double rate, const std::vector<double>& g, bool decays) {
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = options.beta1 * m[i] + (1 - options.beta1) * g[i];
      v[i] = options.beta2 * v[i] + (1 - options.beta2) * g[i] * g[i];
      const double m_hat = m[i] / (1 - std::pow(options.beta1, t));
      const double v_hat = v[i] / (1 - std::pow(options.beta2, t));
      if (decays) w[i] -= rate * options.weight_decay * w[i];
      w[i] -= rate * m_hat / (std::sqrt(v_hat) + options.epsilon);
    }
  }
};

void fill_random(MatrixView tensor, uint64_t seed) {
  Random random(seed);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.data[i] = static_cast<float>(random.normal());
}

TEST(Adam, FollowsTheAlgorithmInDouble) {
  for (const double decay : {0.0, 0.1}) {
    const AdamOptions options{.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-9, .weight_decay = decay};
    Parameter matrix(7, 11), row(1, 13);
    fill_random(matrix.value.view(), 1);
    fill_random(row.value.view(), 2);
    Adam adam({{"matrix", &matrix}, {"row", &row}}, options);
    std::vector<ReferenceAdam> references;
    for (Parameter* p : {&matrix, &row}) {
      ReferenceAdam r{options, {}, {}, {}};
      r.w.assign(p->value.data(), p->value.data() + p->value.size());
      r.m.resize(r.w.size());
      r.v.resize(r.w.size());
      references.push_back(r);
    }
    for (int t = 1; t <= 50; ++t) {
      size_t which = 0;
      for (Parameter* p : {&matrix, &row}) {
        p->gradient_sum();
        fill_random(p->gradient.view(), static_cast<uint64_t>(100 * t) + which);
        std::vector<double> g(p->gradient.view().data, p->gradient.view().data + p->gradient.view().size());
        for (double& x : g) x *= 0.5;
        references[which].update(t, 1e-2, g, which == 0);
        ++which;
      }
      adam.update(1e-2, 0.5);
    }
    size_t which = 0;
    for (Parameter* p : {&matrix, &row}) {
      for (int64_t i = 0; i < p->value.size(); ++i) {
        EXPECT_NEAR(p->value.data()[i], references[which].w[static_cast<size_t>(i)], 2e-6)
            << which << " " << i;
        EXPECT_EQ(p->gradient.view().data[i], 0.0f);
      }
      ++which;
    }
    EXPECT_EQ(adam.updates(), 50);
    EXPECT_EQ(matrix.version, 51u);
  }
}

TEST(Adam, LeavesAloneWhatGotNoGradient) {
  Parameter used(2, 3), idle(5, 1);
  fill_random(idle.value.view(), 3);
  const Weight& before = idle.value;
  const float first = before(0, 0);
  std::fill_n(used.gradient_sum().data, 6, 1.0f);
  Adam adam({{"used", &used}, {"idle", &idle}}, {.weight_decay = 0.1});
  EXPECT_DOUBLE_EQ(adam.gradient_norm(), std::sqrt(6.0));
  adam.update(0.1);
  EXPECT_EQ(idle.value(0, 0), first);
  EXPECT_EQ(idle.version, 1u);
  EXPECT_NEAR(used.value(1, 2), -0.1f, 1e-7);
}

TEST(Adam, SameBitsForAnyThreadCount) {
  const int before = thread_count();
  std::vector<double> norms;
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3, 7}) {
    set_thread_count(threads);
    Parameter big(257, 331), small(1, 5);
    fill_random(big.value.view(), 4);
    big.gradient_sum();
    small.gradient_sum();
    Adam adam({{"big", &big}, {"small", &small}}, {});
    for (int t = 0; t < 3; ++t) {
      fill_random(big.gradient.view(), 5 + static_cast<uint64_t>(t));
      fill_random(small.gradient.view(), 15 + static_cast<uint64_t>(t));
      norms.push_back(adam.gradient_norm());
      adam.update(1e-3, clip_factor(norms.back(), 1.0));
    }
    results.emplace_back(big.value.data(), big.value.data() + big.value.size());
  }
  set_thread_count(before);
  for (size_t i = 1; i < results.size(); ++i) {
    EXPECT_EQ(std::memcmp(results[0].data(), results[i].data(), results[0].size() * sizeof(float)), 0);
    for (size_t t = 0; t < 3; ++t) EXPECT_EQ(norms[t], norms[3 * i + t]);
  }
}

TEST(Adam, NormIsExactAndSeesNaN) {
  Parameter p(101, 173);
  p.gradient_sum();
  fill_random(p.gradient.view(), 6);
  long double sum = 0;
  for (int64_t i = 0; i < p.gradient.view().size(); ++i) {
    sum += static_cast<long double>(p.gradient.view().data[i]) * p.gradient.view().data[i];
  }
  Adam adam({{"p", &p}}, {});
  EXPECT_NEAR(adam.gradient_norm(), std::sqrt(static_cast<double>(sum)),
              1e-11 * std::sqrt(static_cast<double>(sum)));
  p.gradient.view()(100, 172) = 1e30f;  // its square overflows a float
  EXPECT_NEAR(adam.gradient_norm() / 1e30, 1.0, 1e-6);
  p.gradient.view()(50, 3) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(adam.gradient_norm()));
}

TEST(Adam, ClipFactor) {
  EXPECT_EQ(clip_factor(3, 0), 1);
  EXPECT_EQ(clip_factor(3, 5), 1);
  EXPECT_EQ(clip_factor(10, 5), 0.5);
}

}  // namespace
}  // namespace mh

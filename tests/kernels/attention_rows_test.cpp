#include "multihead/kernels/attention_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

Tensor weights_of(int64_t rows, int64_t cols, KeysSeen seen, uint64_t seed) {
  Random random(seed);
  Tensor weights(rows, cols);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t keys = seen == KeysSeen::kAll ? cols : std::min(i + 1, cols);
    float sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      weights(i, j) = random.below(5) == 0 ? 0.0f : static_cast<float>(std::pow(random.uniform(), 9));
      sum += weights(i, j);
    }
    for (int64_t j = 0; j < keys && sum > 0; ++j) weights(i, j) /= sum;
  }
  return weights;
}

double minus_a_log_a(double a) {
  return a > 0 ? -a * std::log(a) : 0;
}

TEST(AttentionRows, AgreeWithTheirFormulasInDouble) {
  for (const KeysSeen seen : {KeysSeen::kAll, KeysSeen::kEarlier}) {
    for (const auto& [rows, cols] :
         {std::pair<int64_t, int64_t>{1, 1}, {7, 3}, {19, 19}, {5, 67}, {67, 67}}) {
      const Tensor a = weights_of(rows, cols, seen, 11), b = weights_of(rows, cols, seen, 12);
      std::vector<AttentionRow> found(static_cast<size_t>(rows));
      describe_rows(a.view(), seen, found.data());
      double mixed = 0;
      for (int64_t i = 0; i < rows; ++i) {
        double entropy = 0, distance = 0, squares = 0;
        for (int64_t j = 0; j < cols; ++j) {
          const auto weight = static_cast<double>(a(i, j));
          entropy += minus_a_log_a(weight);
          distance += weight * std::abs(static_cast<double>(i - j));
          squares += weight * weight;
          mixed += minus_a_log_a((weight + static_cast<double>(b(i, j))) / 2);
        }
        const AttentionRow& row = found[static_cast<size_t>(i)];
        EXPECT_NEAR(row.entropy, entropy, 2e-6 * static_cast<double>(cols));
        EXPECT_NEAR(row.distance, distance, 1e-5 * (1 + distance));
        EXPECT_NEAR(row.squares, squares, 1e-6);
        EXPECT_EQ(row.most, std::max_element(a.view().row(i), a.view().row(i) + cols) - a.view().row(i));
      }
      EXPECT_NEAR(mixed_entropy(a.view(), b.view(), seen), mixed, 1e-4);
    }
  }
}

TEST(AttentionRows, EvenWeightsHaveTheLargestEntropyAndTheFirstKeyForMost) {
  Tensor even(2, 13);
  even.fill(1.0f / 13);
  AttentionRow rows[2];
  describe_rows(even.view(), KeysSeen::kAll, rows);
  EXPECT_NEAR(rows[1].entropy, std::log(13.0), 1e-6);
  EXPECT_EQ(rows[1].most, 0);
  describe_rows(even.view(), KeysSeen::kEarlier, rows);  // row 0 sees one key, row 1 two
  EXPECT_NEAR(rows[1].entropy, 2 * std::log(13.0) / 13, 1e-6);
}

}  // namespace
}  // namespace mh

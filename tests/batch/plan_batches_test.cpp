// Planning of batches: examples by hand, properties, and the same batches as three older planners made.
#include "multihead/batch/plan_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/base/random.h"

namespace mh {
namespace {

using testing::ElementsAre;
using Order = BatchOptions::Order;
using Count = BatchOptions::Count;
using Plan = std::vector<std::vector<int64_t>>;

std::vector<ExampleSize> sizes(const std::vector<int64_t>& tokens) {
  std::vector<ExampleSize> all;
  for (const int64_t count : tokens) all.push_back({.tokens = count, .width = count + 1});
  return all;
}

std::vector<ExampleSize> random_sizes(int count, uint64_t seed = 11) {
  Random random(seed);
  std::vector<ExampleSize> all;
  for (int i = 0; i < count; ++i)
    all.push_back({.tokens = 1 + int64_t{random.below(23)}, .width = 2 + int64_t{random.below(29)}});
  return all;
}

TEST(PlanBatches, AsGivenFillsOneBatchAfterTheOther) {
  const auto examples = sizes({3, 4, 3, 11, 1, 9});
  EXPECT_THAT(plan_batches(examples, {.max_tokens = 10, .order = Order::kAsGiven}),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3), ElementsAre(4, 5)));
  // Padded: two of 4 + 1 are 10, a third would make 15.
  EXPECT_THAT(plan_batches(examples, {.max_tokens = 10, .count = Count::kPadded, .order = Order::kAsGiven}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3), ElementsAre(4), ElementsAre(5)));
}

TEST(PlanBatches, LongestFirstKeepsEqualLengthsInOrderAndLeavesEmptyOnesOut) {
  const auto examples = sizes({3, 0, 7, 3, 1, 7, 2});
  const auto plan = [&](int64_t max_tokens) {
    return plan_batches(examples, {.max_tokens = max_tokens, .order = Order::kLongestFirst});
  };
  EXPECT_THAT(plan(10), ElementsAre(ElementsAre(2), ElementsAre(5, 0), ElementsAre(3, 6, 4)));
  EXPECT_THAT(plan(1000), ElementsAre(ElementsAre(2, 5, 0, 3, 6, 4)));
  EXPECT_EQ(plan(1).size(), 6u);
}

TEST(PlanBatches, RefusesABatchOfNoTokens) {
  for (const Order order : {Order::kAsGiven, Order::kLongestFirst, Order::kShuffled}) {
    EXPECT_TRUE(plan_batches({}, {.order = order}).empty());
    EXPECT_THROW(plan_batches({}, {.max_tokens = 0, .order = order}), UsageError);
  }
}

TEST(PlanBatches, HoldsEveryExampleOnceWithinTheLimitAndNoBatchCouldTakeTheNext) {
  for (const Order order : {Order::kAsGiven, Order::kLongestFirst, Order::kShuffled}) {
    for (const Count count : {Count::kTokens, Count::kPadded}) {
      for (const int64_t limit : {1, 20, 97, 100000}) {
        const auto examples = random_sizes(211);
        const auto cost = [&](const std::vector<int64_t>& batch) {
          int64_t tokens = 0, width = 0;
          for (const int64_t i : batch) {
            tokens += examples[static_cast<size_t>(i)].tokens;
            width = std::max(width, examples[static_cast<size_t>(i)].width);
          }
          return count == Count::kTokens ? tokens : width * static_cast<int64_t>(batch.size());
        };
        std::vector<int64_t> all;
        const Plan plan = plan_batches(examples, {.max_tokens = limit, .count = count, .order = order}, 3);
        for (size_t b = 0; b < plan.size(); ++b) {
          ASSERT_FALSE(plan[b].empty());
          if (plan[b].size() > 1) {
            EXPECT_LE(cost(plan[b]), limit);
          }
          if (order != Order::kShuffled && b + 1 < plan.size()) {
            std::vector<int64_t> more = plan[b];
            more.push_back(plan[b + 1][0]);
            EXPECT_GT(cost(more), limit);
          }
          all.insert(all.end(), plan[b].begin(), plan[b].end());
        }
        if (order == Order::kAsGiven) {
          EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
        }
        std::sort(all.begin(), all.end());
        std::vector<int64_t> expected(examples.size());
        std::iota(expected.begin(), expected.end(), 0);
        EXPECT_EQ(all, expected);
      }
    }
  }
}

TEST(PlanBatches, AShuffleDependsOnSeedAndEpochOnly) {
  const auto examples = random_sizes(211);
  const BatchOptions options{.max_tokens = 97, .seed = 5}, other{.max_tokens = 97, .seed = 6};
  EXPECT_EQ(plan_batches(examples, options, 3), plan_batches(examples, options, 3));
  EXPECT_NE(plan_batches(examples, options, 3), plan_batches(examples, options, 4));
  EXPECT_NE(plan_batches(examples, options, 3), plan_batches(examples, other, 3));
}

// What a seed of a training gives may never change: the plan of every release before this planner.
Plan plan_of_training(const std::vector<ExampleSize>& examples, const BatchOptions& options, uint64_t epoch) {
  Random random(options.seed, epoch);
  std::vector<int32_t> order(examples.size());
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  const auto size = [&](int32_t i) { return examples[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return size(a).tokens < size(b).tokens; });
  Plan batches;
  std::vector<int64_t> batch;
  int64_t longest = 0, total = 0;
  for (const int32_t i : order) {
    const int64_t with = std::max(longest, size(i).width);
    const int64_t tokens = options.count == Count::kPadded ? with * static_cast<int64_t>(batch.size() + 1)
                                                           : total + size(i).tokens;
    if (!batch.empty() && tokens > options.max_tokens) {
      batches.push_back(std::move(batch));
      batch.clear();
      longest = total = 0;
    }
    batch.push_back(i);
    longest = std::max(longest, size(i).width);
    total += size(i).tokens;
  }
  if (!batch.empty()) batches.push_back(std::move(batch));
  random.shuffle(batches);
  return batches;
}

Plan plan_of_generation(const std::vector<ExampleSize>& examples, int64_t max_tokens) {
  std::vector<int64_t> order(examples.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](int64_t i) { return examples[static_cast<size_t>(i)].tokens; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  Plan batches;
  int64_t tokens = 0;
  for (const int64_t i : order) {
    if (length(i) == 0) break;
    if (batches.empty() || tokens + length(i) > max_tokens) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(i);
    tokens += length(i);
  }
  return batches;
}

Plan plan_of_analysis(const std::vector<ExampleSize>& examples, int64_t max_tokens) {
  Plan batches;
  for (size_t i = 0; i < examples.size();) {
    batches.emplace_back();
    int64_t tokens = 0;
    for (; i < examples.size(); ++i) {
      if (tokens > 0 && tokens + examples[i].tokens > max_tokens) break;
      tokens += examples[i].tokens;
      batches.back().push_back(static_cast<int64_t>(i));
    }
  }
  return batches;
}

TEST(PlanBatches, AreThoseOfTheThreePlannersBefore) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    auto examples = random_sizes(static_cast<int>(17 * seed), seed);
    if (seed % 3 == 0) examples[5] = {.tokens = 211, .width = 223};
    for (const int64_t limit : {1, 23, 97, 1000}) {
      for (const Count count : {Count::kTokens, Count::kPadded}) {
        const BatchOptions options{.max_tokens = limit, .count = count, .seed = seed};
        EXPECT_EQ(plan_batches(examples, options, seed % 4), plan_of_training(examples, options, seed % 4));
      }
      EXPECT_EQ(plan_batches(examples, {.max_tokens = limit, .order = Order::kAsGiven}),
                plan_of_analysis(examples, limit));
      auto some_empty = examples;
      for (size_t i = 2; i < some_empty.size(); i += 7) some_empty[i] = {};
      EXPECT_EQ(plan_batches(some_empty, {.max_tokens = limit, .order = Order::kLongestFirst}),
                plan_of_generation(some_empty, limit));
    }
  }
}

}  // namespace
}  // namespace mh

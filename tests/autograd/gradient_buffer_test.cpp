#include "multihead/autograd/gradient_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace mh {
namespace {

struct Three {
  Parameter first{3, 7}, second{1, 5}, third{2, 16};
  std::vector<NamedParameter> named() { return {{"first", &first}, {"second", &second}, {"third", &third}}; }
};

TEST(GradientBuffer, LaysGradientsOneBehindTheOtherOnCacheLines) {
  Three p;
  p.second.gradient_sum()(0, 3) = 4;  // from before: gone
  GradientBuffer buffer(p.named());
  ASSERT_EQ(buffer.views().size(), 3u);
  EXPECT_EQ(buffer.all().size(), 32u + 16u + 32u);
  int64_t numbers = 0;
  for (size_t i = 0; i < 3; ++i) {
    const GradientBuffer::View& view = buffer.views()[i];
    EXPECT_EQ(view.name, p.named()[i].name);
    EXPECT_EQ(view.parameter, p.named()[i].parameter);
    EXPECT_EQ(view.values.data, buffer.all().data() + view.begin);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.values.data) % kCacheLine, 0u);
    EXPECT_EQ(view.values.rows, view.parameter->value.rows());
    EXPECT_EQ(view.values.cols, view.parameter->value.cols());
    numbers += view.values.size();
  }
  EXPECT_LE(static_cast<int64_t>(buffer.all().size()), numbers + 15 * 3);
  EXPECT_TRUE(std::all_of(buffer.all().begin(), buffer.all().end(), [](float x) { return x == 0; }));
}

TEST(GradientBuffer, BackwardPassesAddIntoTheViewsAndNowhereElse) {
  Three p;
  GradientBuffer buffer(p.named());
  p.third.gradient_sum()(1, 2) += 5;
  p.third.gradient_sum()(1, 2) += 6;
  p.first.gradient_sum()(2, 6) += 7;
  EXPECT_EQ(buffer.views()[2].values(1, 2), 11);
  EXPECT_EQ(buffer.all()[0 + 2 * 7 + 6], 7);
  EXPECT_EQ(std::accumulate(buffer.all().begin(), buffer.all().end(), 0.0f), 18);
}

TEST(GradientBuffer, KnowsWhatWasReachedHereOrElsewhere) {
  Three p;
  GradientBuffer buffer(p.named());
  for (size_t i = 0; i < 3; ++i) EXPECT_FALSE(buffer.reached(i));
  p.first.gradient_sum();
  buffer.all()[static_cast<size_t>(buffer.views()[1].begin)] = 3;  // what another process found
  buffer.mark_reached(1);
  EXPECT_TRUE(buffer.reached(0));
  EXPECT_TRUE(buffer.reached(1));
  EXPECT_FALSE(buffer.reached(2));
  EXPECT_EQ(p.second.gradient.view()(0, 0), 3);
}

TEST(GradientBuffer, GivesParametersTheirOwnMemoryBack) {
  Three p;
  {
    GradientBuffer buffer(p.named());
    p.first.gradient_sum()(0, 0) = 1;
  }
  EXPECT_FALSE(p.first.gradient.exists());
  EXPECT_EQ(p.first.gradient_sum()(0, 0), 0);
  GradientBuffer buffer(p.named());
  EXPECT_EQ(p.first.gradient_sum().data, buffer.all().data());
}

}  // namespace
}  // namespace mh

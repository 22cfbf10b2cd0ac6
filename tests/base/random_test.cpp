#include "multihead/base/random.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace mh {
namespace {

using testing::ElementsAre;

// The known answers that Random123 (Salmon et al. 2011) ships for philox4x32 with 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_THAT(philox({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_THAT(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Random, IsPhiloxOverAllItsBits) {
  const uint64_t seed = 0x123456789abcdef0, stream = 0xfedcba9876543211;
  Random random(seed, stream);
  random.seek((uint64_t{1} << 34) * 4 + 1);  // a block number of more than 32 bits
  const auto block = philox({0, 4, 0x76543211, 0xfedcba98}, {0x9abcdef0, 0x12345678});
  EXPECT_EQ(random.bits(), block[1]);
  EXPECT_EQ(random.bits(), block[2]);
  EXPECT_EQ(random.bits(), block[3]);
}

TEST(Random, ResumesWhereItWas) {
  Random random(5, 3);
  for (int i = 0; i < 7; ++i) random.uniform();
  const uint64_t position = random.position();
  EXPECT_EQ(position, 14u);
  std::vector<uint32_t> first, second;
  for (int i = 0; i < 11; ++i) first.push_back(random.bits());
  Random again(5, 3);
  again.seek(position);
  for (int i = 0; i < 11; ++i) second.push_back(again.bits());
  EXPECT_EQ(first, second);
}

TEST(Random, SeedsAndStreamsDiffer) {
  EXPECT_NE(Random(1).bits(), Random(2).bits());
  EXPECT_NE(Random(1, 0).bits(), Random(1, 1).bits());
  EXPECT_NE(Random(uint64_t{1} << 32).bits(), Random(1).bits());
}

TEST(Random, UniformFillsItsInterval) {
  Random random(11);
  constexpr int kDraws = 100'003;
  double sum = 0, low = 1, high = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.uniform();
    sum += x;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  EXPECT_GE(low, 0.0);
  EXPECT_LT(high, 1.0);
  EXPECT_LT(low, 1e-3);
  EXPECT_GT(high, 1 - 1e-3);
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * 0.2887 / std::sqrt(kDraws));
}

TEST(Random, BelowIsEven) {
  Random random(13);
  constexpr int kFaces = 7, kDraws = 70'000;
  std::vector<int> seen(kFaces);
  for (int i = 0; i < kDraws; ++i) ++seen.at(random.below(kFaces));
  double chi_squared = 0;
  for (int count : seen) chi_squared += std::pow(count - kDraws / kFaces, 2) / (kDraws / kFaces);
  EXPECT_LT(chi_squared, 22.5);  // 6 degrees of freedom: one seed in a thousand
  EXPECT_EQ(random.below(1), 0u);
  // 3/4 of 2^32: without rejection the lower half would come twice as often as it should.
  const uint32_t n = 0xC0000000;
  int lower_third = 0;
  for (int i = 0; i < 30'000; ++i) lower_third += random.below(n) < n / 3;
  EXPECT_NEAR(lower_third, 10'000, 5 * 82);
}

TEST(Random, NormalHasItsMoments) {
  Random random(17);
  constexpr int kDraws = 100'003;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth / kDraws, 3, 5 * std::sqrt(96.0 / kDraws));
}

TEST(Random, ShufflePermutesEvenly) {
  Random random(19);
  int first_stays = 0;
  for (int round = 0; round < 5'000; ++round) {
    std::vector<int> order(5);
    std::iota(order.begin(), order.end(), 0);
    random.shuffle(order);
    first_stays += order[0] == 0;
    std::sort(order.begin(), order.end());
    ASSERT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
  }
  EXPECT_NEAR(first_stays, 1'000, 5 * 28.3);
}

}  // namespace
}  // namespace mh

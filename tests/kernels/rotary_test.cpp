// Rotary positions equal the formula in double, and scores depend on distances only.
#include "multihead/kernels/rotary.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/base/thread_pool.h"

namespace mh {
namespace {

constexpr RotaryPairs kKinds[] = {RotaryPairs::kHalves, RotaryPairs::kNeighbours};

std::vector<float> random_rows(int64_t rows, int64_t stride, uint64_t seed = 1) {
  Random random(seed);
  std::vector<float> x(static_cast<size_t>(rows * stride));
  for (float& v : x) v = static_cast<float>(random.normal());
  return x;
}

/// What row i of x becomes at a position, in double.
std::vector<double> reference(const Rotary& r, const float* x, int64_t position) {
  std::vector<double> y(x, x + r.heads * r.d_head);
  for (int h = 0; h < r.heads; ++h) {
    for (int i = 0; i < r.rotated / 2; ++i) {
      const bool halves = r.pairs == RotaryPairs::kHalves;
      const int64_t a = int64_t{h} * r.d_head + (halves ? i : 2 * i);
      const int64_t b = a + (halves ? r.rotated / 2 : 1);
      const double angle = static_cast<double>(position) * std::pow(r.base, -2.0 * i / r.rotated);
      const auto xa = static_cast<double>(x[a]), xb = static_cast<double>(x[b]);
      y[static_cast<size_t>(a)] = xa * std::cos(angle) - xb * std::sin(angle);
      y[static_cast<size_t>(b)] = xa * std::sin(angle) + xb * std::cos(angle);
    }
  }
  return y;
}

void expect_right(const Rotary& r, const std::vector<int64_t>& positions, int64_t padding) {
  SCOPED_TRACE(fmt::format("heads {} d_head {} rotated {} base {} kind {} padding {}", r.heads, r.d_head,
                           r.rotated, r.base, static_cast<int>(r.pairs), padding));
  const auto rows = static_cast<int64_t>(positions.size());
  const int64_t cols = int64_t{r.heads} * r.d_head, stride = cols + padding;
  const auto x = random_rows(rows, stride);
  auto in_place = x;
  std::vector<float> apart(x.size(), 77.0f);
  rotate(r, {x.data(), rows, cols, stride}, {apart.data(), rows, cols, stride});
  const MatrixView same(in_place.data(), rows, cols, stride);
  rotate(r, same, same);
  for (int64_t i = 0; i < rows; ++i) {
    const auto want = reference(r, x.data() + i * stride, positions[static_cast<size_t>(i)]);
    for (int64_t c = 0; c < stride; ++c) {
      const auto at = static_cast<size_t>(i * stride + c);
      if (c >= cols) {
        ASSERT_EQ(apart[at], 77.0f) << "wrote between the rows";
        ASSERT_EQ(in_place[at], x[at]) << "wrote between the rows";
        continue;
      }
      // Three roundings of numbers below 5 in magnitude: the sine, the product, the sum.
      ASSERT_NEAR(apart[at], want[static_cast<size_t>(c)], 3 * 5 * 0x1p-24) << i << " " << c;
      ASSERT_EQ(apart[at], in_place[at]) << "in place differs";
      if (c % r.d_head >= r.rotated) {
        ASSERT_EQ(apart[at], x[at]) << "turned too much";
      }
    }
  }
}

TEST(Rotary, FollowsTheFormulaInEverySize) {
  const std::vector<int32_t> offsets{0, 3, 3, 14}, positions{5, 0, 1023, 1024, kRotaryPositions - 1, 7};
  const std::vector<int64_t> by_offset{0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  for (const RotaryPairs pairs : kKinds) {
    for (const int d_head : {2, 3, 8, 17, 31, 33, 64, 80, 127}) {
      for (const int rotated : {2, d_head / 2 * 2, (d_head / 4 + 1) * 2}) {
        if (rotated > d_head) continue;
        Rotary r{.heads = 3, .d_head = d_head, .rotated = rotated, .pairs = pairs};
        r.offsets = offsets;
        expect_right(r, by_offset, d_head % 3);
        r = {.heads = 2, .d_head = d_head, .rotated = rotated, .base = 500000, .pairs = pairs};
        r.positions = positions;
        expect_right(r, {positions.begin(), positions.end()}, d_head % 2);
      }
    }
  }
}

TEST(Rotary, APairTurnsByItsPosition) {
  const std::vector<int32_t> positions{0, 1, 3};
  const std::vector<float> x{1, 0, 1, 0, 0, 2};
  std::vector<float> y(6);
  rotate({.d_head = 2, .rotated = 2, .positions = positions}, {x.data(), 3, 2}, {y.data(), 3, 2});
  const float want[] = {1, 0, std::cos(1.0f), std::sin(1.0f), -2 * std::sin(3.0f), 2 * std::cos(3.0f)};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(y[i], want[i], 3e-7f);
}

TEST(Rotary, ScoresDependOnTheDistanceAlone) {
  constexpr int kSize = 38, kRows = 11;
  for (const RotaryPairs pairs : kKinds) {
    const auto one = random_rows(2, kSize, 3);
    // The same query and the same key at every position.
    std::vector<float> q, k;
    for (int i = 0; i < kRows; ++i) {
      q.insert(q.end(), one.begin(), one.begin() + kSize);
      k.insert(k.end(), one.begin() + kSize, one.end());
    }
    std::vector<int32_t> positions;
    for (int i = 0; i < kRows; ++i) positions.push_back(70 + 13 * i);
    const Rotary r{.d_head = kSize, .rotated = 26, .pairs = pairs, .positions = positions};
    rotate(r, {q.data(), kRows, kSize}, {q.data(), kRows, kSize});
    rotate(r, {k.data(), kRows, kSize}, {k.data(), kRows, kSize});
    const auto score = [&](int i, int j) {
      double sum = 0;
      for (int c = 0; c < kSize; ++c) {
        sum += static_cast<double>(q[static_cast<size_t>(i * kSize + c)]) *
               static_cast<double>(k[static_cast<size_t>(j * kSize + c)]);
      }
      return sum;
    };
    for (int distance = -4; distance <= 4; ++distance) {
      const double first = score(4, 4 + distance);
      for (int i = 5; i < kRows && i + distance < kRows; ++i) {
        EXPECT_NEAR(score(i, i + distance), first, 2e-5);
      }
    }
    EXPECT_GT(std::abs(score(4, 4) - score(4, 5)), 1e-2) << "and on the distance they do depend";
  }
}

TEST(Rotary, TheGradientTurnsBack) {
  const std::vector<int32_t> offsets{0, 6, 13};
  for (const RotaryPairs pairs : kKinds) {
    const Rotary r{.heads = 3, .d_head = 35, .rotated = 34, .pairs = pairs, .offsets = offsets};
    const auto x = random_rows(13, 105, 4), dy = random_rows(13, 105, 5);
    std::vector<float> y(x.size()), dx(x.size()), again(x.size());
    rotate(r, {x.data(), 13, 105}, {y.data(), 13, 105});
    rotate_gradient(r, {dy.data(), 13, 105}, {dx.data(), 13, 105});
    rotate_gradient(r, {y.data(), 13, 105}, {again.data(), 13, 105});
    double along_y = 0, along_x = 0;  // dy . R x = (R^T dy) . x
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(again[i], x[i], 2e-6f);
      along_y += static_cast<double>(dy[i]) * static_cast<double>(y[i]);
      along_x += static_cast<double>(dx[i]) * static_cast<double>(x[i]);
    }
    EXPECT_NEAR(along_y, along_x, 1e-4);
  }
}

TEST(Rotary, ThreadsAndForgottenTablesChangeNothing) {
  constexpr int64_t kRows = 3001, kCols = 4 * 64;
  const std::vector<int32_t> offsets{0, 1500, 3001};
  const auto x = random_rows(kRows, kCols);
  const auto turned = [&](double base) {
    std::vector<float> y(x.size());
    rotate({.heads = 4, .d_head = 64, .rotated = 64, .base = base, .offsets = offsets},
           {x.data(), kRows, kCols}, {y.data(), kRows, kCols});
    return y;
  };
  const int before = thread_count();
  set_thread_count(1);
  const auto one = turned(10000);
  for (int n = 0; n < 20; ++n) turned(100 + n);  // more tables than are kept
  set_thread_count(7);
  EXPECT_EQ(turned(10000), one);
  set_thread_count(1);
  std::vector<float> a, b;  // two callers at once, who both make the table
  std::thread other([&] { a = turned(77); });
  b = turned(77);
  other.join();
  EXPECT_EQ(a, b);
  set_thread_count(before);
}

TEST(Rotary, AnImpossibleDescriptionNamesItsField) {
  const std::vector<int32_t> offsets{0, 2, 5}, falling{0, 6, 5}, positions{0, 1, 2, 3, 4}, few{0, 1},
      low{0, -1, 2, 3, 4};
  std::vector<float> x(5 * 16);
  const auto expect = [&](const char* words,
                          const std::function<void(Rotary&, MatrixView&, MatrixView&)>& spoil) {
    Rotary r{.heads = 2, .d_head = 8, .rotated = 8, .offsets = offsets};
    MatrixView from(x.data(), 5, 16), to = from;
    spoil(r, from, to);
    try {
      rotate(r, from, to);
      ADD_FAILURE() << "expected: " << words;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr(words));
    }
  };
  expect("heads is 0", [](auto& r, auto&, auto&) { r.heads = 0; });
  expect("d_head is 1", [](auto& r, auto&, auto&) { r.d_head = 1; });
  expect("d_head is 1025", [](auto& r, auto&, auto&) { r.d_head = 1025; });
  expect("rotated is 7", [](auto& r, auto&, auto&) { r.rotated = 7; });
  expect("rotated is 0", [](auto& r, auto&, auto&) { r.rotated = 0; });
  expect("rotated is 10", [](auto& r, auto&, auto&) { r.rotated = 10; });
  expect("base is 0", [](auto& r, auto&, auto&) { r.base = 0; });
  expect("base is nan", [](auto& r, auto&, auto&) { r.base = std::nan(""); });
  expect("x is [5,15]", [](auto&, auto& from, auto&) { from.cols = 15; });
  expect("stride 3", [](auto&, auto& from, auto&) { from.stride = 3; });
  expect("y is [4,16]", [](auto&, auto&, auto& to) { to.rows = 4; });
  expect("y has 5 rows but no data", [](auto&, auto&, auto& to) { to.data = nullptr; });
  expect("both of offsets and positions", [&](auto& r, auto&, auto&) { r.positions = positions; });
  expect("neither of offsets and positions", [](auto& r, auto&, auto&) { r.offsets = {}; });
  expect("offsets run from 0 to 1", [&](auto& r, auto&, auto&) { r.offsets = few; });
  expect("offsets go from 6 to 5", [&](auto& r, auto&, auto&) { r.offsets = falling; });
  const auto by_positions = [](std::span<const int32_t> rows) {
    return [rows](Rotary& r, MatrixView&, MatrixView&) {
      r.offsets = {};
      r.positions = rows;
    };
  };
  expect("positions has 2 numbers", by_positions(few));
  expect("positions holds -1", by_positions(low));
  std::vector<int32_t> far(positions);
  far[4] = kRotaryPositions;
  expect("positions holds 16777216", by_positions(far));
  rotate({.heads = 2, .d_head = 8, .rotated = 8}, {nullptr, 0, 16}, {nullptr, 0, 16});  // no rows need none
}

}  // namespace
}  // namespace mh

#include "multihead/kernels/dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "multihead/base/thread_pool.h"
#include "on_target.h"

namespace mh {
namespace {

TEST(Dropout, EveryElementFollowsItsBitsOnEveryTarget) {
  const std::vector<int32_t> offsets{0, 5, 5, 12};
  const std::vector<int64_t> sentences{3, 9, (int64_t{1} << 33) + 4};
  Dropout settings{0.3f, dropout_stream(1, 2, 3), offsets, sentences};
  for (const std::string& target : dispatch_targets()) {
    const OnTarget only(target);
    for (const int64_t cols : {1, 15, 16, 17, 127, 128, 129, 300}) {
      const int64_t stride = cols + 3, begin = 2, rows = 9;
      std::vector<float> x(static_cast<size_t>(rows * stride), 2.0f), y(x.size(), 77.0f);
      dropout(settings, {x.data(), rows, cols, stride}, {y.data(), rows, cols, stride}, begin);
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t row = begin + i, s = row < 5 ? 0 : 2;
        for (int64_t c = 0; c < cols; ++c) {
          const uint32_t bits = element_bits(settings.stream, sentences[static_cast<size_t>(s)],
                                             row - offsets[static_cast<size_t>(s)], c);
          const float want = bits < settings.threshold() ? 0.0f : 2.0f * settings.keep_scale();
          ASSERT_EQ(y[static_cast<size_t>(i * stride + c)], want) << row << " " << c;
        }
        ASSERT_EQ(y[static_cast<size_t>(i * stride + cols)], 77.0f);
      }
    }
  }
}

TEST(Dropout, BitsAreTheHalfWordsOfTheCounter) {
  const PhiloxKey stream{11, 12};
  const auto words = philox({16 * 2 + 5, 7, 9, 1u << 24}, stream);
  const int64_t sentence = (int64_t{1} << 32) + 9;
  EXPECT_EQ(element_bits(stream, sentence, 7, 2 * 128 + 0 * 16 + 5), words[0] & 0xFFFF);
  EXPECT_EQ(element_bits(stream, sentence, 7, 2 * 128 + 5 * 16 + 5), words[2] >> 16);
  const auto of_weight = philox({21, 3, 9, 1u << 24 | 2}, stream);
  EXPECT_EQ(weight_bits(stream, sentence, 2, 3 * 8 + 6, 21), of_weight[3] & 0xFFFF);
}

TEST(Dropout, ShareAndMeanAreRight) {
  const std::vector<int32_t> offsets{0, 1000};
  const std::vector<int64_t> sentences{0};
  const Dropout settings{0.1f, dropout_stream(1, 2, 3), offsets, sentences};
  std::vector<float> x(1000 * 128, 1.0f);
  const MatrixView view(x.data(), 1000, 128);
  dropout(settings, view, view);
  double sum = 0, zeros = 0;
  for (const float v : x) {
    sum += static_cast<double>(v);
    zeros += v == 0;
  }
  EXPECT_NEAR(zeros / 128000, 0.1, 0.004);  // five standard deviations
  EXPECT_NEAR(sum / 128000, 1.0, 0.005);
}

TEST(Dropout, StreamsDifferBySeedUpdateAndSite) {
  EXPECT_NE(dropout_stream(1, 2, 3), dropout_stream(2, 2, 3));
  EXPECT_NE(dropout_stream(1, 2, 3), dropout_stream(1, 3, 3));
  EXPECT_NE(dropout_stream(1, 2, 3), dropout_stream(1, 2, 4));
  EXPECT_NE(dropout_stream(1, uint64_t{1} << 32, 3), dropout_stream(1, 0, 3));
}

TEST(Dropout, RateZeroCopies) {
  std::vector<float> x{1, 2, 3}, y(3);
  dropout({}, {x.data(), 1, 3}, {y.data(), 1, 3});
  EXPECT_EQ(x, y);
}

TEST(Dropout, ErrorsNameWhatIsWrong) {
  const std::vector<int32_t> offsets{0, 2};
  const std::vector<int64_t> sentences{0};
  std::vector<float> x(6);
  const MatrixView three(x.data(), 3, 2), two(x.data(), 2, 2);
  Dropout settings{0.5f, {}, offsets, sentences};
  const auto message = [&](ConstMatrixView a, MatrixView b) {
    try {
      dropout(settings, a, b);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(message(three, two), testing::HasSubstr("x is [3,2] and y [2,2]"));
  EXPECT_THAT(message(three, three), testing::HasSubstr("rows [0, 3)"));
  settings.rate = 1;
  EXPECT_THAT(message(two, two), testing::HasSubstr("rate 1"));
  settings.rate = 0.5f;
  settings.sentences = {};
  EXPECT_THAT(message(two, two), testing::HasSubstr("0 sentences"));
}

}  // namespace
}  // namespace mh

#include "multihead/heads/reports/pictures/heat_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/base/terminal_text.h"
#include "multihead/base/utf8.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

using Cells = HeatMapOptions::Cells;

Tensor identity(int64_t size) {
  Tensor weights(size, size);
  for (int64_t i = 0; i < size; ++i) weights(i, i) = 1;
  return weights;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string without_colours(std::string text) {
  for (size_t at; (at = text.find("\x1b[")) != std::string::npos;)
    text.erase(at, text.find('m', at) - at + 1);
  return text;
}

TEST(HeatMap, AFewTokensHaveLevelLabelsAndOneShadeACell) {
  Tensor weights = identity(2);
  weights(0, 1) = 0.3f;
  const std::vector<std::string> rows{"der", "Hund"}, columns{"the", "dog"};
  EXPECT_EQ(heat_map(weights.view(), rows, columns),
            "     the dog\n"
            "der  \u2588\u2588\u2588\u2588\u2592\u2592\u2592\u2592\n"
            "Hund     \u2588\u2588\u2588\u2588\n");
}

TEST(HeatMap, NumbersArePerCent) {
  Tensor weights(1, 3);
  weights(0, 0) = 1, weights(0, 1) = 0.004f, weights(0, 2) = 0.567f;
  const std::vector<std::string> rows{"a"}, columns{"b", "c", "d"};
  EXPECT_EQ(heat_map(weights.view(), rows, columns, {.cells = Cells::kNumbers}),
            "  b   c   d\n"
            "a 100   \u00b7  57\n");
}

TEST(HeatMap, NoLineIsWiderThanAskedWhateverTheSizes) {
  Random random(11);
  const char* kLabels[] = {"x",
                           "Geschwindigkeitsbegrenzung",
                           "\u00c4pfel",
                           "\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57",
                           "e\u0301te\u0301",
                           "tab\there"};
  for (const int64_t keys : {1, 2, 7, 13, 29, 31, 40, 83, 200}) {
    for (const Cells cells : {Cells::kShades, Cells::kColours, Cells::kNumbers}) {
      for (const int columns : {20, 57, 80}) {
        Tensor weights(3, keys);
        std::vector<std::string> rows, labels;
        for (int i = 0; i < 3; ++i) rows.push_back(kLabels[random.below(6)]);
        for (int64_t j = 0; j < keys; ++j) {
          labels.push_back(kLabels[random.below(6)]);
          weights(1, j) = static_cast<float>(random.uniform());
        }
        const std::string picture =
            heat_map(weights.view(), rows, labels, {.cells = cells, .columns = columns});
        EXPECT_EQ(first_invalid_utf8(picture), std::string::npos);
        for (const std::string& line : lines_of(without_colours(picture))) {
          EXPECT_LE(display_width(line), columns) << keys << " keys:\n" << picture;
          EXPECT_EQ(line.find('\t'), std::string::npos);
        }
      }
    }
  }
}

TEST(HeatMap, ManyTokensHaveLabelsDownwardsAndParts) {
  const Tensor weights = identity(60);
  std::vector<std::string> labels;
  for (int i = 0; i < 60; ++i) labels.push_back("token" + std::to_string(i));
  const auto lines = lines_of(heat_map(weights.view(), labels, labels));
  // 80 - 8 columns hold 36 cells of two: two parts of 7 label lines and 60 rows, a line between.
  ASSERT_EQ(lines.size(), 2u * (7 + 60) + 1);
  EXPECT_EQ(lines[1].substr(8, 1), "t");
  EXPECT_EQ(lines[6].substr(8, 3), "0 1");
  EXPECT_EQ(lines[7], "token0  \u2588\u2588");
}

TEST(HeatMap, ColoursAreOneEscapeACell) {
  const Tensor weights = identity(3);
  const std::vector<std::string> labels{"a", "b", "c"};
  const std::string picture = heat_map(weights.view(), labels, labels, {.cells = Cells::kColours});
  EXPECT_THAT(picture, testing::HasSubstr("\x1b[48;5;231m"));
  EXPECT_THAT(picture, testing::HasSubstr("\x1b[48;5;16m"));
  for (const std::string& line : lines_of(picture)) {
    EXPECT_TRUE(line.find('\x1b') == std::string::npos || line.ends_with("\x1b[0m"));
  }
}

TEST(HeatMap, NeedsTwentyColumns) {
  const Tensor weights = identity(1);
  const std::vector<std::string> labels{"a"};
  EXPECT_THROW(heat_map(weights.view(), labels, labels, {.columns = 19}), UsageError);
}

TEST(DisplayWidth, CountsWideAndCombiningCharacters) {
  EXPECT_EQ(display_width("m\u00fcde"), 4);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("\u6f22"), 2);
  EXPECT_EQ(display_width(""), 0);
}

}  // namespace
}  // namespace mh

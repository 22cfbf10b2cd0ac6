#include "multihead/heads/reports/pictures/heat_map_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/reports/pictures/heat_map.h"
#include "multihead/tensor/tensor.h"
#include "tests/heads/reports/well_formed.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

Tensor weights_of(int64_t rows, int64_t cols) {
  Tensor weights(rows, cols);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) weights(i, j) = i == j ? 0.75f : 0.125f;
  }
  return weights;
}

TEST(HeatMapSvg, HasACellForEachWeightAndBothLabels) {
  const Tensor first = weights_of(3, 4), second = weights_of(2, 5);
  const std::vector<std::string> three{"der", "Hund", "</s>"}, four{"the", "dog", "runs", "</s>"},
      two{"a", "b"}, five{"1", "2", "3", "4", "5"};
  const HeatMapPanel panels[] = {{.title = "decoder.0.cross_attention.1",
                                  .caption = "targets down",
                                  .weights = first.view(),
                                  .queries = three,
                                  .keys = four},
                                 {.title = "encoder.1.self_attention.0",
                                  .caption = "",
                                  .weights = second.view(),
                                  .queries = two,
                                  .keys = five}};
  const std::string svg = heat_maps_as_svg(panels);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"cell\""), 3u * 4 + 2 * 5);
  EXPECT_EQ(count(svg, "<title>Hund to dog: 0.750</title>"), 1u);
  EXPECT_EQ(count(svg, ">&lt;/s&gt;</text>"), 2u);
  EXPECT_EQ(count(svg, "rotate(-60)"), 4u + 5);
  EXPECT_THAT(svg, HasSubstr(">decoder.0.cross_attention.1</text>"));
  EXPECT_THAT(svg, HasSubstr(">attention weight</text>"));
  EXPECT_THAT(svg, HasSubstr("fill=\"white\""));  // also on a dark page
}

TEST(HeatMapSvg, FramesTheCellsThatAreMeant) {
  const Tensor weights = weights_of(2, 3);
  const std::vector<std::string> two{"a", "b"}, three{"c", "d", "e"};
  const HeatMapCell framed[] = {{.query = 1, .key = 2}};
  HeatMapPanel panel{.title = "t", .caption = "", .weights = weights.view(), .queries = two, .keys = three};
  EXPECT_EQ(count(heat_maps_as_svg({&panel, 1}), "class=\"framed\""), 0u);
  panel.framed = framed;
  const std::string svg = heat_maps_as_svg({&panel, 1});
  expect_well_formed(svg);
  ASSERT_EQ(count(svg, "class=\"framed\""), 1u);
  // Where the last cell is, and around it alone.
  const auto place = [&](const char* kind, size_t from) {
    const size_t at = svg.find(" x=", svg.find(kind, from));
    return svg.substr(at, svg.find(" fill", at) - at);
  };
  EXPECT_EQ(place("class=\"framed\"", 0), place("class=\"cell\"", svg.rfind("class=\"cell\"")));
}

TEST(HeatMapSvg, HostileLabelsStayText) {
  const Tensor weights = weights_of(7, 7);
  const std::vector<std::string> labels{"<script>alert('x')</script>",  "a&b;c",    "\"quoted\"",
                                        std::string("\0\x1b[31m\n", 7), "\xff\xfe", "\uffff\ufffe",
                                        std::string(5000, 'w')};
  const HeatMapPanel panel{
      .title = "]]><&", .caption = "\x01", .weights = weights.view(), .queries = labels, .keys = labels};
  const std::string svg = heat_maps_as_svg({&panel, 1});
  expect_well_formed(svg);
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, Not(HasSubstr("\uffff")));
  EXPECT_LT(svg.size(), 40'000u) << "long labels are shortened";
}

TEST(HeatMapSvg, TheGridHasAPictureOfEachHead) {
  const Tensor square = weights_of(6, 6), wide = weights_of(3, 6);
  const HeadGridRow rows[] = {
      {.title = "encoder.0.self_attention", .heads = {square.view(), square.view(), square.view()}},
      {.title = "decoder.0.cross_attention", .heads = {wide.view(), wide.view()}}};
  const std::string svg = head_grid_as_svg("the <small> dog", rows);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<g transform"), 5u);
  EXPECT_EQ(count(svg, "class=\"cell\""), 3u * 36 + 2 * 18);
  EXPECT_EQ(count(svg, ">head 2</text>"), 1u);
  EXPECT_THAT(svg, HasSubstr(">encoder.0.self_attention</text>"));
  EXPECT_THAT(svg, HasSubstr("the &lt;small&gt; dog"));
}

TEST(HeatMapSvg, LabelsMustFit) {
  const Tensor weights = weights_of(2, 3);
  const std::vector<std::string> two{"a", "b"};
  const HeatMapPanel panel{
      .title = "t", .caption = "", .weights = weights.view(), .queries = two, .keys = two};
  EXPECT_THROW(heat_maps_as_svg({&panel, 1}), ShapeError);
  EXPECT_THROW(heat_map(weights.view(), two, two), ShapeError);
  EXPECT_THROW(heat_maps_as_svg({}), UsageError);
  EXPECT_THROW(head_grid_as_svg("", {}), UsageError);
}

TEST(HeatMapSvg, DarkerIsMore) {
  // The fill of each cell of one row, from weight 0 to 1: their lightness falls.
  Tensor weights(1, 11);
  for (int64_t j = 0; j < 11; ++j) weights(0, j) = static_cast<float>(j) / 10;
  const std::vector<std::string> query{"q"}, keys(11, "k");
  const HeatMapPanel panel{
      .title = "t", .caption = "c", .weights = weights.view(), .queries = query, .keys = keys};
  const std::string svg = heat_maps_as_svg({&panel, 1});
  int last = 3 * 256;
  for (size_t at = svg.find("class=\"cell\""); at != std::string::npos;
       at = svg.find("class=\"cell\"", at + 1)) {
    const size_t colour = svg.find("fill=\"#", at) + 7;
    int sum = 0;
    for (size_t i = 0; i < 3; ++i) sum += std::stoi(svg.substr(colour + 2 * i, 2), nullptr, 16);
    EXPECT_LT(sum, last);
    last = sum;
  }
}

}  // namespace
}  // namespace mh

// multihead heads similar, on a small model with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/terminal_text.h"
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;

class HeadsSimilar : public SmallFolder {
 protected:
  HeadsSimilar() {
    std::string lines;
    for (const std::string& line : kText) lines += line + "\n";
    input = "-i '" + scratch.write("source", lines) + "' --target '" + scratch.write("target", lines) + "'";
  }
  std::string verb(const std::string& more = "") {
    return "heads similar '" + folder + "' " + input + " " + more;
  }

  std::string input;
};

TEST_F(HeadsSimilar, TheTableFitsEightyColumnsWhateverTheBatches) {
  const ToolResult result = run_tool(verb("--cluster-ratio 1"));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("6 sentences, targets as given\n"));
  EXPECT_THAT(result.out, HasSubstr("\nencoder self-attention: 6 heads, "));
  EXPECT_THAT(result.out, HasSubstr("\ncross-attention: 6 heads, "));
  EXPECT_THAT(result.out, HasSubstr("\nin two layers              9  "));
  EXPECT_THAT(result.out, HasSubstr("\nlayer 1 "));
  EXPECT_THAT(result.out, HasSubstr(" heads, JSD "));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(display_width(line), 80) << line;
  EXPECT_EQ(run_tool("--threads 1 " + verb("--cluster-ratio 1")).out, result.out);
  const ToolResult other = run_tool(verb("--cluster-ratio 1 --seed 2"));
  EXPECT_NE(other.out, result.out);
}

TEST_F(HeadsSimilar, WritesJsonAndAPicture) {
  const std::string picture = scratch / "similar.svg";
  const ToolResult result = run_tool(verb("--json --seed 7 --svg '" + picture + "'"));
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["kinds"].size(), 3u);
  EXPECT_EQ(json["kinds"][0]["heads"][0]["nearest"].size(), 3u);
  EXPECT_THAT(scratch.read("similar.svg"), testing::StartsWith("<svg "));
}

TEST_F(HeadsSimilar, AnIntervalOfOneSentenceIsADash) {
  const ToolResult result = run_tool(
      "heads similar '" + folder + "' --target '" + scratch.write("one", "a cat\n") + "'", "the dog\n");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" ±   -  "));
  EXPECT_THAT(result.out, testing::Not(HasSubstr("inf")));
}

TEST_F(HeadsSimilar, RefusesWhatItDoesNotTake) {
  expect_error(run_tool(verb("--svg '" + scratch / "similar.png" + "'")), 2, ".svg");
  expect_error(run_tool(verb("--cluster-ratio 2")), 2, "--cluster-ratio");
  expect_error(run_tool("heads --text 'a cat' similar '" + folder + "' " + input), 2,
               "is a flag of multihead heads");
}

}  // namespace
}  // namespace mh

// multihead heads compare, on a small model and one that was trained from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/terminal_text.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

class HeadsCompareVerb : public SmallFolder {
 protected:
  HeadsCompareVerb() {
    std::string lines;
    for (const std::string& line : kText) lines += line + "\n";
    source = scratch.write("source", lines);
    after = scratch / "after";
    const ToolResult trained =
        run_tool("train --model '" + after + "' --init-from '" + folder + "' --train-source '" + source +
                 "' --train-target '" + source + "' --updates 9 --learning-rate 0.02 --warmup 1 --quiet");
    EXPECT_EQ(trained.status, 0) << trained.err;
  }
  std::string verb(const std::string& more = "") const {
    return "heads compare '" + folder + "' --with '" + after + "' -i '" + source + "' --target '" + source +
           "' " + more;
  }

  std::string source, after;
};

TEST_F(HeadsCompareVerb, SaysWhatATrainingChanged) {
  const ToolResult result = run_tool(verb());
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("6 sentences, targets as given\nafter: "));
  EXPECT_THAT(result.out, HasSubstr("\ndecoder.0.cross_attention\nhead   nats  after      JSD "));
  EXPECT_THAT(result.out, HasSubstr("\nMost changed: "));
  for (const std::string& line : lines_of(result.out)) {
    if (line.starts_with("after: ")) continue;  // a path
    EXPECT_LE(display_width(line), 80) << line;
  }
  const auto json = nlohmann::json::parse(run_tool(verb("--json --seed 7")).out);
  EXPECT_EQ(json["verb"], "compare");
  EXPECT_EQ(json["after"], after);
  EXPECT_EQ(json["options"]["seed"], 7);
  for (const auto& head : json["heads"]) {
    EXPECT_GT(head["divergence"]["mean"], 0) << head;
    EXPECT_GT(head["qk_change"], 0) << head;
    EXPECT_GT(head["ov_change"], 0) << head;
  }
}

TEST_F(HeadsCompareVerb, AnIntervalOfOneSentenceIsADash) {
  const ToolResult result = run_tool("heads compare '" + folder + "' --with '" + after + "'", "the dog\n");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(" ± -  "));
  EXPECT_THAT(result.out, Not(HasSubstr("inf")));
}

TEST_F(HeadsCompareVerb, RefusesInOneLine) {
  expect_error(run_tool("heads compare '" + folder + "' -i '" + source + "'"), 2, "--with");
  expect_error(
      run_tool("heads compare '" + folder + "' --with '" + goldens_folder() + "/t5/text' -i '" + source +
               "'"),
      2, "have not the same heads in the same attentions; compare a model with one that was trained from it");
  expect_error(run_tool("heads compare '" + folder + "' --with nothing -i '" + source + "'"), 1,
               "no model folder nothing");
}

}  // namespace
}  // namespace mh

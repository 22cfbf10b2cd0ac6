// multihead heads retrieval on a small GPT-2 with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/terminal_text.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

class HeadsRetrieval : public testing::Test {
 protected:
  HeadsRetrieval() {
    scratch.write("needles",
                  "two dogs see a cat .\ttwo dogs see\ta cat\n\nthe man has a small house .\tthe man has\ta "
                  "small house\n");
    scratch.write("filler", "a cat runs .\nthe dog sees a small house .\ntwo men sleep .\n");
    scratch.write("wrong", "two dogs see a cat .\ttwo dogs see\n");
    scratch.write("elsewhere", "two dogs see a cat .\ttwo dogs see\ta house\n");
    scratch.write("empty", "\n");
  }
  ToolResult retrieval(const std::string& flags) const {
    return run_tool("heads retrieval '" + goldens_folder() + "/generate/gpt2' --quiet " + flags);
  }
  std::string file(const std::string& name) const { return "'" + scratch / name + "' "; }

  ScratchFolder scratch;
};

TEST_F(HeadsRetrieval, TablesAreForEightyColumns) {
  const ToolResult result =
      retrieval("--needles " + file("needles") + "--filler " + file("filler") +
                "--lengths 31 --lengths 47 --depths 0.5 --depths 1 --limit answer --sinks 2 "
                "--window 7 --text-tokens 17 --heads 'decoder.1.*'");
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part : {" length   depth   exact      log p\n     31     0.5    ", "\n     47       1    ",
                           "\nhead                                score             weight\n",
                           "\nlimited                              fall          loss rise\n",
                           "\ndecoder.1.self_attention.2 ", "loss is "})
    EXPECT_THAT(result.out, HasSubstr(part));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(display_width(line), 80) << line;
}

TEST_F(HeadsRetrieval, JsonHasAllOfItAndMakesItAgain) {
  const std::string asked =
      "--needles " + file("needles") + "--filler " + file("filler") + "--lengths 37 --json ";
  const ToolResult result = retrieval(asked +
                                      "--depths 0 --depths 0.5 --limit all --by-group --window 5 "
                                      "--text-tokens 13 --heads decoder.0.self_attention.1");
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["verb"], "retrieval");
  EXPECT_EQ(json["options"]["limit"], "all");
  EXPECT_EQ(json["options"]["heads"][0], "decoder.0.self_attention.1");
  EXPECT_EQ(json["needles"].size(), 2u);
  EXPECT_EQ(json["needles"][0]["answer"], "a cat");
  EXPECT_EQ(json["trials"].size(), 4u);
  EXPECT_EQ(json["trials"][0]["place"], 0);
  EXPECT_EQ(json["heads"].size(), 9u);
  EXPECT_EQ(json["places"].size(), 2u);
  EXPECT_EQ(json["places"][1]["depth"], 0.5);
  EXPECT_EQ(json["heads"][8]["by_place"].size(), 2u);
  EXPECT_EQ(json["limited"].size(), 1u);
  EXPECT_TRUE(json["limited"][0]["loss_rise"].is_number());
  EXPECT_GT(json["text_loss"], 0);
  scratch.write("report.json", result.out);
  EXPECT_EQ(retrieval(asked + "--depths 0 --depths 0.5 --options " + file("report.json")).out, result.out);
  const ToolResult greedy = retrieval(asked + "--depths 0.5 --answers greedy");
  EXPECT_EQ(greedy.status, 0);
  EXPECT_FALSE(nlohmann::json::parse(greedy.out).contains("limited"));
  EXPECT_NE(retrieval(asked + "--depths 0.5 --answers greedy --mute 'decoder.0.*'").out, greedy.out);
}

TEST_F(HeadsRetrieval, SaysInOneLineWhatIsWrong) {
  const std::string needles = "--needles " + file("needles");
  expect_error(
      retrieval("--needles " + file("wrong")), 1,
      "wrong, line 1: expected a sentence, a question and its answer with tabs between them, got 2 fields");
  expect_error(retrieval("--lengths 31 --needles " + file("elsewhere")), 2,
               "needle 1: its answer 'a house' does not stand in 'two dogs see a cat .'");
  expect_error(retrieval("--lengths 31 --needles " + file("empty")), 2, "--needles: there are none");
  expect_error(retrieval(needles + "--lengths 31 --filler " + file("empty")), 2,
               "--filler: it has no tokens");
  expect_error(retrieval(needles), 2,
               "--lengths: 512 tokens are more than the 67 that the model has positions for");
  expect_error(retrieval(needles + "--lengths 9"), 2, "--lengths: a text of 9 has no room");
  expect_error(retrieval(needles + "--lengths much"), 2, "--lengths: expected an integer");
  expect_error(retrieval(needles + "--lengths 31 --depths 2"), 2,
               "--depths: expected a number from 0 to 1, got 2");
  expect_error(retrieval(needles + "--lengths 31 --heads 'decoder.*'"), 2, "--heads");
  expect_error(run_tool("heads retrieval demo"), 2, "name a causal model");
  expect_error(run_tool("heads retrieval '" + goldens_folder() + "/fill/bert'"), 2, "name a causal model");
}

}  // namespace
}  // namespace mh

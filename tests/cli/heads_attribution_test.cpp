// multihead heads attribution, on a small translator with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/file.h"
#include "multihead/base/terminal_text.h"
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

class HeadsAttribution : public SmallFolder {
 protected:
  ToolResult attribution(const std::string& flags) const {
    return run_tool("heads attribution '" + folder + "' " + flags);
  }
  static constexpr const char* kText = "--text 'the small dog sees' --target-text 'a cat runs' ";
};

TEST_F(HeadsAttribution, ShowsALineForEachTokenAndAColumnForEachMethod) {
  const ToolResult result = attribution(kText);
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part : {"translation: a cat runs\n", "log p of token ", " when every token read is ",
                           "attn", "norm", "rollout", "relev", "flow", "grad*x", "integr", "zeroing",
                           "\n   target\n", "<start>*", "\n* never replaced."})
    EXPECT_THAT(result.out, HasSubstr(part));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(display_width(line), 80) << line;
}

TEST_F(HeadsAttribution, JsonHasTheMethodsThatAreAskedForAndTheToken) {
  const ToolResult result =
      attribution(std::string(kText) + "--method rollout --method relevance --token 0 --json");
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["explained"], "log-probability");
  EXPECT_EQ(json["position"], 0);
  EXPECT_EQ(json["completeness_error"], nullptr);
  EXPECT_LT(json["score"].get<double>(), 0);
  EXPECT_EQ(json["tokens"].back()["side"], "target");
  EXPECT_EQ(json["tokens"].back()["kept"], true) << "the start, all that the decoder has read";
  double sum = 0;
  for (const auto& token : json["tokens"]) {
    EXPECT_EQ(token["scores"].size(), 2u);
    sum += token["scores"]["rollout"].get<double>();
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  const auto other = nlohmann::json::parse(
      attribution(std::string(kText) + "--method rollout --token 0 --target-token " + "dog --json").out);
  EXPECT_NE(other["token_id"], json["token_id"]);
}

TEST_F(HeadsAttribution, MakesAReportAgainFromItsOptions) {
  const std::string first =
      attribution(std::string(kText) + "--method relevance --method rollout --steps 5 --json").out;
  const std::string file = scratch.write("report.json", first);
  EXPECT_EQ(attribution(std::string(kText) + "--json --options '" + file + "'").out, first);
  const std::string lines = scratch.write("lines.en", "the small dog sees a cat\na dog runs\n");
  const ToolResult corpus = attribution("-i '" + lines + "' --draws 2 --json --options '" + file + "'");
  ASSERT_EQ(corpus.status, 0) << corpus.err;
  const auto json = nlohmann::json::parse(corpus.out);
  EXPECT_EQ(json["methods"].size(), 3u) << "the two methods of the report, and random orders";
  EXPECT_EQ(json["options"]["draws"], 2);
  EXPECT_EQ(json["options"]["methods"], nlohmann::json({"relevance", "rollout"}));
}

TEST_F(HeadsAttribution, MeasuresMethodsOnACorpus) {
  const std::string lines = folder + "/lines.en", targets = folder + "/lines.de";
  write_file_atomically(lines, "the small dog sees a cat\na dog runs\n");
  write_file_atomically(targets, "a cat sees the dog\nthe cat runs\n");
  const std::string flags = "-i '" + lines + "' --target '" + targets + "' --method attention --method flow ";
  const ToolResult result = attribution(flags);
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part : {"2 sentences", "\nattention ", "\nflow ", "\nrandom ", " ± ", "gain on random"})
    EXPECT_THAT(result.out, HasSubstr(part));
  EXPECT_THAT(result.out, Not(HasSubstr("rollout")));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(display_width(line), 80) << line;
  const auto json = nlohmann::json::parse(attribution(flags + "--draws 2 --points 3 --json").out);
  EXPECT_EQ(json["sentences"], 2);
  ASSERT_EQ(json["methods"].size(), 3u);
  EXPECT_EQ(json["methods"][1]["method"], "flow");
}

TEST_F(HeadsAttribution, RefusesWhatDoesNotBelongTogether) {
  expect_error(attribution(""), 2, "give --text, whose tokens are weighed, or -i");
  expect_error(attribution("--text x -i y"), 2, "give --text, whose tokens are weighed, or -i");
  expect_error(attribution("--text 'a dog' --draws 3"), 2, "--draws belongs to -i, which is missing");
  expect_error(attribution("-i lines --token 3"), 2, "--token belongs to --text, which is missing");
  expect_error(attribution("--text 'a dog' --method foo"), 2, "--method: expected attention|norm-weighted|");
  expect_error(attribution("--text 'a dog' --token 99"), 2, "there is no token 99 whose probability");
  expect_error(attribution("--text 'a dog' --second 'a cat'"), 2, "a translator has no vector of a text");
  expect_error(attribution("--text 'a dog' --text-pair 'a cat'"), 2,
               "which does not read two texts as one sequence");
  expect_error(attribution("-i lines --text-pair 'a cat'"), 2, "--text-pair belongs to --text");
  expect_error(attribution("--text 'a dog' --steps 0"), 2, "--steps: expected");
}

// The tokens of the second text stand below a line of their own.
TEST(PairAttributionVerb, ShowsTheTokensOfBothTexts) {
  const ToolResult result = run_tool("heads attribution '" + std::string(goldens_folder()) +
                                     "/labels/bert_pairs' --text 'the cat sees a house' --text-pair "
                                     "'two dogs' --label neutral --method rollout");
  EXPECT_THAT(result.out, HasSubstr("The logit of neutral: "));
  EXPECT_THAT(result.out, testing::ContainsRegex("  1 the .*   second text\n.*two .*dogs "));
}

}  // namespace
}  // namespace mh

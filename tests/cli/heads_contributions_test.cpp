// multihead heads contributions, on a small translator with random weights and on small models of other kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/terminal_text.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class HeadsContributions : public SmallFolder {
 protected:
  ToolResult contributions(const std::string& flags) const {
    return run_tool("heads contributions '" + folder + "' " + flags);
  }
  static ToolResult contributions_of(const std::string& golden, const std::string& flags) {
    return run_tool("heads contributions '" + goldens_folder() + "/" + golden + "' " + flags);
  }
  static void expect_shown(const ToolResult& result, std::initializer_list<const char*> parts) {
    ASSERT_EQ(result.status, 0) << result.err;
    for (const char* part : parts) EXPECT_THAT(result.out, HasSubstr(part));
    for (const std::string& line : lines_of(result.out)) EXPECT_LE(display_width(line), 80) << line;
  }
  static void expect_refused(const ToolResult& result, const char* part) {
    EXPECT_NE(result.status, 0);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("multihead: "));
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  }
  const std::string asked = "--text 'the small dog sees' --prefix 'a cat' --answer dogs --wrong sees ";
};

TEST_F(HeadsContributions, ShowsTheSumItsPartsAndTheStrongest) {
  expect_shown(contributions(asked),
               {"The logit of 'dogs'", " less that of 'sees'", "\n  embeddings", "\n  together",
                "\n  off by ", "\nself-attention, logit by head; ff: the feed-forward layer\nlayer",
                "\ncross-attention, logit by head\nlayer", "\nstrongest", "through the tokens"});
  expect_shown(
      contributions("--text 'the small dog sees' --prefix 'a cat sees the dog' --every-position --centred"),
      {"The logits of all ", " tokens that follow another one, summed, each less the mean\nof all logits: "});
  expect_shown(contributions_of("labels/bert_words", "--text 'two dogs run' --token 1"),
               {"The logit of ", " of token 1, '"});
  expect_shown(contributions_of("sentences/dense",
                                "--text 'two dogs' --answer 'a cat' --wrong 'two cats' --strongest 0"),
               {"The cosine with 'a cat' less that of 'two cats': "});
}

TEST_F(HeadsContributions, JsonHasPartsThatSumToTheScoreAndIsMadeAgain) {
  const std::string first = contributions(asked + "--json --sources 2").out;
  const auto json = nlohmann::json::parse(first);
  double sum = 0, magnitude = 0;
  int sources = 0;
  for (const auto& part : json["parts"]) {
    sum += part["sum"].get<double>();
    magnitude += std::abs(part["sum"].get<double>());
    if (!part["sources"].is_null()) ++sources;
  }
  EXPECT_EQ(sources, 2);
  EXPECT_NEAR(sum, json["score"].get<double>(), 1e-6 * magnitude);
  EXPECT_NEAR(magnitude, json["magnitude"].get<double>(), 1e-9);
  std::ofstream(scratch / "report.json") << first;
  EXPECT_EQ(contributions(asked + "--json --options '" + std::string(scratch / "report.json") + "'").out,
            first);
}

TEST_F(HeadsContributions, OfAFileAreMeans) {
  const std::string file = scratch / "questions.tsv";
  std::ofstream(file) << "the small dog sees\tdogs\tsees\nthe dog\tcat\n";
  expect_shown(contributions("-i '" + file + "'"), {"The mean logit of 2 texts: ", " ± ", "95 % interval"});
  const auto json = nlohmann::json::parse(contributions("-i '" + file + "' --json").out);
  EXPECT_EQ(json["texts"], 2);
  EXPECT_TRUE(json["parts"][0]["sum"].contains("half"));
  std::ofstream(file) << "a\tb\tc\td\n";
  expect_refused(contributions("-i '" + file + "'"), ":1: 4 columns; expected a text");
  std::ofstream(file) << "the dog\tcat\nthe dog\tcat\tcat\n";
  expect_refused(contributions("-i '" + file + "'"), "text 2: ");
  std::ofstream(file) << "";
  expect_refused(contributions("-i '" + file + "'"), "there is no text");
}

TEST_F(HeadsContributions, RefusesWhatDoesNotFitInOneLine) {
  expect_refused(contributions(""), "give --text, or -i");
  expect_refused(contributions("--text a -i b"), "give --text, or -i");
  expect_refused(contributions("-i b --answer dogs"), "--answer belongs to --text");
  expect_refused(contributions(asked + "--every-position"), "leave --answer and --wrong out");
  expect_refused(contributions("--text 'the dog' --answer cat --wrong cat"), "both begin with the token");
  expect_refused(contributions("--text 'the dog' --token 1"),
                 "a token is named for a classifier of tokens alone");
  expect_refused(contributions(asked + "--mute encoder.9.self_attention.0"), "encoder.9");
  expect_refused(contributions_of("sentences/dense", "--text 'two dogs'"),
                 "--answer is missing: this model makes vectors");
}

}  // namespace
}  // namespace mh

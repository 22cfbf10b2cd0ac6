// multihead heads patch, on a small translator with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/terminal_text.h"
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

class HeadsPatch : public SmallFolder {
 protected:
  ToolResult patch(const std::string& flags, const std::string& clean = "the small dog sees",
                   const std::string& corrupt = "a small cat sees") const {
    return run_tool("heads patch '" + folder + "' --clean '" + clean + "' --corrupt '" + corrupt + "' " +
                    flags);
  }
  static constexpr const char* kAnswers = "--answer dogs --wrong cats ";
};

TEST_F(HeadsPatch, ShowsScoresATableOfHeadsAndTheStrongest) {
  const ToolResult result = patch(std::string(kAnswers) + "--strongest 4");
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part :
       {"'dogs' (", ") rather than 'cats' (", "log p answer", "\nclean ", "\ncorrupt ",
        "\nencoder self-attention, restored %\nlayer     0     1     2\n    0", "\ndecoder self-attention, ",
        "\ndecoder cross-attention, ", "\nstrongest  ", "\nrestored: how much of the difference"})
    EXPECT_THAT(result.out, HasSubstr(part));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(display_width(line), 80) << line;
}

TEST_F(HeadsPatch, MakesAReportAgainFromItsOptions) {
  const std::string first = patch(std::string(kAnswers) + "--what patterns --max-batch-tokens 9 --json").out;
  const std::string file = scratch.write("report.json", first);
  EXPECT_EQ(patch(std::string(kAnswers) + "--json --options '" + file + "'").out, first);
  const auto options = nlohmann::json::parse(first)["options"];
  EXPECT_EQ(options, nlohmann::json({{"what", "patterns"},
                                     {"by_position", false},
                                     {"max_batch_tokens", 9},
                                     {"source_language", nullptr},
                                     {"target_language", nullptr}}));
  const ToolResult other = patch(std::string(kAnswers) + "--what heads --json --options '" + file + "'");
  EXPECT_EQ(nlohmann::json::parse(other.out)["options"]["what"], "heads")
      << "a flag counts before the report";
}

TEST_F(HeadsPatch, ShowsPositionsByLayers) {
  for (const char* what : {"heads", "patterns", "stream"}) {
    const ToolResult result = patch(std::string(kAnswers) + "--by-position --prefix 'a cat' --what " + what);
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("\nposition "));
    EXPECT_THAT(result.out, HasSubstr("  0 <start>"));
    EXPECT_THAT(result.out, HasSubstr(" \u2190 ")) << "the corrupt token and the clean one";
    for (const std::string& line : lines_of(result.out)) EXPECT_LE(display_width(line), 80) << line;
  }
  const std::string stream = patch(std::string(kAnswers) + "--what stream --json").out;
  EXPECT_EQ(patch(std::string(kAnswers) + "--what stream --by-position --json").out, stream);
  const auto json = nlohmann::json::parse(stream);
  EXPECT_EQ(json["values"].back()["name"], "decoder.1.output");
  EXPECT_EQ(json["values"].size(), 3 * json["clean"]["tokens"].size() + 3);
}

TEST_F(HeadsPatch, JsonHasEveryHeadAndHeadsMayBeMuted) {
  const auto json =
      nlohmann::json::parse(patch(std::string(kAnswers) + "--json --mute decoder.1.cross_attention.2").out);
  ASSERT_EQ(json["values"].size(), 3u * 6);
  EXPECT_EQ(json["values"].back()["name"], "decoder.1.cross_attention.2");
  EXPECT_EQ(json["values"].back()["restored"], 0);
  EXPECT_EQ(json["values"].back()["position"], nullptr);
}

TEST_F(HeadsPatch, HostileTextStaysInItsLine) {
  const ToolResult result = patch("--answer 'dogs' --wrong cats --by-position",
                                  "the \x1b[31m \u202e dog\u0007", "the \x1b[31m \u202e cat\u0007");
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* control : {"\x1b", "\u202e", "\u0007"}) EXPECT_THAT(result.out, Not(HasSubstr(control)));
}

TEST_F(HeadsPatch, SaysInOneLineWhatIsWrong) {
  expect_error(patch(kAnswers, "the small dog sees", "a cat"), 2, "tokens and the corrupt one");
  expect_error(patch(kAnswers, "the dog", "the dog"), 2, "too small to say how much of it is restored");
  expect_error(patch("--answer '' --wrong cats"), 2, "--answer: expected a text, got nothing");
  expect_error(patch("--answer dogs --wrong dogs"), 2, "--answer and --wrong both begin with");
  expect_error(patch("--answer dogs"), 2, "--wrong");
  expect_error(patch(std::string(kAnswers) + "--what layers"), 2, "heads|patterns|stream");
  expect_error(patch(std::string(kAnswers) + "-i file"), 2, "-i");
}

TEST(PatchTokenLabelsVerb, NamesTheToken) {
  const std::string patch =
      "heads patch '" + std::string(goldens_folder()) +
      "/labels/bert_words' --clean 'the cat sees a house' --corrupt 'two cat sees a house' "
      "--answer B-PER --wrong O ";
  EXPECT_THAT(run_tool(patch + "--token 3").out, HasSubstr(" rather than 'O' (O), of token 3, sees\n"));
  EXPECT_EQ(nlohmann::json::parse(run_tool(patch + "--token 3 --json").out)["token"], 3);
  expect_error(run_tool(patch), 2, "gives labels to tokens, so name one of 0 to 6");
  expect_error(run_tool(patch + "--token 7"), 2, "there is no token 7");
}

}  // namespace
}  // namespace mh

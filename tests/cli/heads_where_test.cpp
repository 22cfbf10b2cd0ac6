// multihead heads where, on a small translator with random weights.
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

class HeadsWhere : public SmallFolder {
 protected:
  HeadsWhere()
      : corpus("-i '" +
               scratch.write("source", "the small dog sees a cat\n\na cat runs\ndogs see the cats\n") +
               "' --target '" + scratch.write("target", "a cat\n\ndogs see the cats\nthe dog\n") +
               "' --least-count 1 ") {}
  ToolResult where(const std::string& arguments) const {
    return run_tool("heads where '" + folder + "' " + corpus + arguments);
  }
  std::string corpus;
};

void expect_eighty_columns(const std::string& text) {
  for (const std::string& line : lines_of(text)) EXPECT_LE(display_width(line), 80) << line;
}

TEST_F(HeadsWhere, ShowsAHeadWithItsSentencesTokensAndHeadsAlike) {
  const ToolResult result = where("decoder.1.cross_attention.2 --sentences 2 --usual 1");
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part :
       {"3 sentences, targets as given\n",
        "\ndecoder.1.cross_attention.2: each target token to come attends to source",
        "\nStrength of 3 sentences: ", "\nThe strongest, [query] \u2192 {key}\n", "\nUsual ones, ",
        "\nkey chosen ", "\nmost like it ", "\ndecoder.0.cross_attention."})
    EXPECT_THAT(result.out, HasSubstr(part));
  EXPECT_THAT(result.out, testing::ContainsRegex("0\\.[0-9][0-9]  .* \u2192 .*, line [134]\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b"))) << "colours are for terminals";
  expect_eighty_columns(result.out);
  EXPECT_EQ(run_tool("--threads 1 heads where '" + folder + "' " + corpus +
                     "--head decoder.1.cross_attention.2 --sentences 2 --usual 1")
                .out,
            result.out);
}

TEST_F(HeadsWhere, AllHeadsHaveALineEach) {
  const ToolResult result = where("--all");
  ASSERT_EQ(result.status, 0) << result.err;
  expect_eighty_columns(result.out);
  size_t heads = 0;
  for (const std::string& line : lines_of(result.out))
    heads += line.starts_with("   ") && line[3] >= '0' && line[3] <= '9';
  EXPECT_EQ(heads, 3u * (2 + 2 + 2));
  const auto json = nlohmann::json::parse(where("--all --json").out);
  ASSERT_EQ(json["heads"].size(), heads);
  EXPECT_EQ(json["heads"][0]["head"], "encoder.0.self_attention.0");
  EXPECT_FALSE(json["heads"][17]["strongest"].empty());
  EXPECT_EQ(
      nlohmann::json::parse(where("--head 'encoder.*' --head '*.cross_attention.*' --json").out)["heads"]
          .size(),
      12u);
}

TEST_F(HeadsWhere, HostileTextStaysInItsLine) {
  std::string hostile = "a cat \x1b[31m runs \u202e sees \u732b\u732b\u732b the\u0007dog";
  for (int i = 0; i < 40; ++i) hostile += i % 3 == 0 ? " the small dog" : " \u732b runs";
  corpus = "-i '" + scratch.write("hostile", hostile + "\ndogs see \u732b\na cat\n") + "' ";
  for (const char* which : {"--all", "encoder.0.self_attention.0", "'decoder.*.self_attention.*'"}) {
    const ToolResult result = where(std::string(which) + " --least-count 1");
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
    EXPECT_THAT(result.out, Not(HasSubstr("\u202e")));
    EXPECT_THAT(result.out, Not(HasSubstr("\u0007")));
    expect_eighty_columns(result.out);
  }
}

TEST_F(HeadsWhere, SaysWhichHeadsItCanShow) {
  expect_error(
      where(""), 2,
      "name a head, such as encoder.3.self_attention.1 or 'encoder.3.self_attention.*', or give --all");
  expect_error(where("--all encoder.0.self_attention.0"), 2, "give --all or heads, not both");
  expect_error(where("encoder.7.self_attention.0"), 2,
               "this model has no head 'encoder.7.self_attention.0'; it has encoder.0.self_attention");
  expect_error(where("encoder.0.self_attention.0 --sure 2"), 2, "--sure");
}

}  // namespace
}  // namespace mh

// multihead fill, on the small BERT and RoBERTa whose words transformers wrote down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "tests/cli/small_folder.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::SizeIs;
using testing::StartsWith;

std::string fill(const std::string& name) {
  return "fill '" + (kGoldens / "fill" / name).string() + "' ";
}

TEST(FillVerb, SaysTheWordsOfTransformers) {
  const json golden = json::parse(read_file(kGoldens / "fill" / "expected.json"));
  for (const auto& [name, expected] : golden.items()) {
    std::string texts;
    for (const auto& one : expected) texts += one["text"].get<std::string>() + "\n";
    const auto lines = lines_of(run_tool(fill(name) + "--json --words 7", texts).out);
    ASSERT_EQ(lines.size(), expected.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      const json line = json::parse(lines[i]);
      EXPECT_EQ(line["text"], expected[i]["text"]);
      ASSERT_EQ(line["masks"].size(), expected[i]["masks"].size());
      for (size_t m = 0; m < line["masks"].size(); ++m) {
        const auto &found = line["masks"][m], &wanted = expected[i]["masks"][m];
        ASSERT_EQ(found.size(), 7u);
        for (size_t k = 0; k < found.size(); ++k) {
          EXPECT_EQ(found[k]["id"], wanted[k]["token"]);
          EXPECT_EQ(found[k]["word"], wanted[k]["word"]);
          EXPECT_NEAR(found[k]["probability"].get<double>(), wanted[k]["score"].get<double>(), 1e-5);
        }
      }
    }
  }
}

TEST(FillVerb, ALineForEachMask) {
  const ToolResult result =
      run_tool(fill("bert") + "--text 'The [MASK] dogs [MASK].' --text '[MASK]' --words 2");
  EXPECT_EQ(result.status, 0) << result.err;
  const auto lines = lines_of(result.out);
  ASSERT_THAT(lines, SizeIs(3));
  for (const std::string& line : lines) EXPECT_THAT(line, StartsWith("0."));
  EXPECT_NE(run_tool(fill("bert") + "--text '[MASK]' --mute encoder.1.self_attention.0").out,
            run_tool(fill("bert") + "--text '[MASK]'").out);
}

TEST(FillVerb, ComparesWordsWithAndWithoutHeads) {
  const std::string flags = fill("bert") + "--words 3 --text 'The [MASK] dogs [MASK].' --text '[MASK]' ",
                    mute = "--mute 'encoder.*' ";
  const ToolResult found = run_tool(flags + mute + "--compare");
  ASSERT_EQ(found.status, 0) << found.err;
  const auto lines = lines_of(found.out), whole = lines_of(run_tool(flags).out),
             muted = lines_of(run_tool(flags + mute).out);
  ASSERT_THAT(whole, SizeIs(3));
  ASSERT_THAT(lines, SizeIs(1 + 3 * (1 + 1 + 3) + 2));
  EXPECT_THAT(lines[0],
              testing::AllOf(testing::HasSubstr("ALL HEADS"), testing::HasSubstr("WITH CHANGED HEADS")));
  EXPECT_EQ(lines[2], "text 1 mask 1: The [MASK] dogs [MASK].");
  EXPECT_EQ(lines[7], "text 1 mask 2: The [MASK] dogs [MASK].");
  EXPECT_EQ(lines[12], "text 2 mask 1: [MASK]");
  // Each mask's words are those of the lines without --compare: "0.5 a  0.3 b  0.1 c".
  int changed = 0;
  for (size_t m = 0; m < 3; ++m) {
    std::string left, right;
    for (size_t k = 0; k < 3; ++k) {
      const std::string& line = lines[3 + 5 * m + k];
      const size_t half = line.find("0.", 4);
      ASSERT_NE(half, std::string::npos) << line;
      const std::string first = line.substr(2, half - 2);
      left += (k > 0 ? "  " : "") + first.substr(0, first.find_last_not_of(' ') + 1);
      right += (k > 0 ? "  " : "") + line.substr(half);
    }
    EXPECT_EQ(left, whole[m]);
    EXPECT_EQ(right, muted[m]);
    changed += whole[m].substr(9, whole[m].find("  ") - 9) != muted[m].substr(9, muted[m].find("  ") - 9);
  }
  EXPECT_EQ(lines.back(), "the best word of " + std::to_string(changed) + " of 3 masks changed");
  EXPECT_EQ(run_tool(fill("bert") + mute + "--compare", "").out, "nothing to fill in\n");
  expect_error(run_tool(flags + "--compare"), 2, "--mute");
  expect_error(run_tool(flags + mute + "--compare --json"), 2, "--json");
}

TEST(FillVerb, ReadsPairsOfTexts) {
  const ScratchFolder scratch;
  const std::string firsts = "'" + scratch.write("a", "The sky.\n[MASK] dogs\n") + "'",
                    seconds = "'" + scratch.write("b", "It is [MASK].\nThe [MASK].\n") + "'";
  const ToolResult found = run_tool(fill("bert") + "--json -i " + firsts + " --input-pair " + seconds);
  ASSERT_EQ(found.status, 0) << found.err;
  const auto lines = lines_of(found.out);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(json::parse(lines[0])["pair"], "It is [MASK].");
  EXPECT_THAT(json::parse(lines[0])["masks"], SizeIs(1));
  EXPECT_THAT(json::parse(lines[1])["masks"], SizeIs(2));
  EXPECT_EQ(
      run_tool(fill("bert") + "--json --text 'The sky.' --text-pair 'It is [MASK].' --text '[MASK] dogs' "
                              "--text-pair 'The [MASK].'")
          .out,
      found.out);
  EXPECT_NE(json::parse(run_tool(fill("bert") + "--json --text 'It is [MASK].'").out)["masks"],
            json::parse(lines[0])["masks"]);
  expect_error(run_tool(fill("bert") + "--text 'The sky.' --text '[MASK]' --text-pair '[MASK]'"), 2,
               "--text-pair: expected one for each --text, got 1 for 2");
  expect_error(run_tool(fill("bert") + "--text-pair '[MASK]'", "a\n"), 2, "--text");
  expect_error(run_tool(fill("bert") + "--input-pair " + seconds, "[MASK]\n"), 1,
               "b: expected a line for each line of standard input, got 2 for 1");
  expect_error(run_tool(fill("bert") + "--text a --text-pair \"$(printf '\\377')\""), 2,
               "--text-pair: byte 1 (0xff) is not UTF-8");
}

TEST(FillVerb, BadInputIsOneLineAndAStatus) {
  expect_error(run_tool(fill("bert") + "--text 'The sky.'"), 1, "text 1 has no mask; write [MASK]");
  expect_error(run_tool(fill("bert"), "[MASK]\n\n"), 1, "standard input line 2 has no mask");
  expect_error(run_tool(fill("roberta") + "--text 'The [MASK].'"), 1, "write <mask>");
  expect_error(run_tool(fill("bert") + "--text '[MASK]' --words 257"), 2, "--words: expected");
  expect_error(run_tool(fill("bert") + "--text '[MASK]' --words 250"), 2, "--words");
  expect_error(run_tool(fill("bert") + "-i x --text y"), 2, "--text");
  expect_error(run_tool(fill("bert") + "--text '[MASK]' --mute encoder.9.self_attention.0"), 2, "encoder.9");
  expect_error(run_tool("fill '" + (kGoldens / "generate/gpt2").string() + "' --text a"), 2,
               "predicts no masked words");
  expect_error(run_tool("fill '" + (kGoldens / "bert/encoder").string() + "' --text a"), 2,
               "without a head for masked words");
}

}  // namespace
}  // namespace mh

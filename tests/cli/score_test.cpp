// multihead score, on a small model with random weights.
#include "multihead/evaluate/score.h"
#include "multihead/folders/save_folder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/small_folder.h"
#include "tests/generate/generate_golden.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ScoreVerb : public SmallFolder {
 protected:
  ToolResult score_text(const std::string& source, const std::string& target, const std::string& flags = "") {
    return run_tool("score --model '" + folder + "' --source '" + scratch.write("s", source) +
                    "' --target '" + scratch.write("t", target) + "' " + flags);
  }
};

TEST_F(ScoreVerb, GivesLogProbabilities) {
  const std::vector<std::string> source{kText[0], kText[4], kText[1]}, target{kText[2], "", kText[3]};
  std::vector<std::vector<int32_t>> targets;
  for (const auto& line : target) {
    targets.push_back(tokenizer.encode_ids(line));
    targets.back().pop_back();
  }
  const auto expected = score(model, sources(source), targets);
  const auto join = [](const std::vector<std::string>& lines) {
    return lines[0] + "\n" + lines[1] + "\n" + lines[2] + "\n";
  };
  const std::string files = "score --model '" + folder + "' --source '" + scratch.write("s", join(source)) +
                            "' --target '" + scratch.write("t", join(target)) + "' ";
  const auto sums = run_tool(files), tokens = run_tool(files + "--per-token --max-batch-tokens 9");
  EXPECT_EQ(sums.status, 0) << sums.err;
  const auto sum_lines = lines_of(sums.out), token_lines = lines_of(tokens.out);
  ASSERT_EQ(sum_lines.size(), 3u);
  ASSERT_EQ(token_lines.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (const float token : expected[i]) sum += static_cast<double>(token);
    EXPECT_NEAR(std::stod(sum_lines[i]), sum, 2e-5);
    std::istringstream numbers(token_lines[i]);
    std::vector<double> found;
    for (double number; numbers >> number;) found.push_back(number);
    ASSERT_EQ(found.size(), expected[i].size() + 1);
    EXPECT_NEAR(found[0], sum, 2e-5);
    for (size_t t = 0; t < expected[i].size(); ++t) EXPECT_NEAR(found[t + 1], expected[i][t], 2e-6);
  }
  const auto unequal = run_tool(files + "--target '" + scratch.write("u", "one\ntwo\n") + "'");
  EXPECT_NE(unequal.status, 0);
  scratch.write("t", "one\ntwo\n");
  const auto shorter = run_tool(files);
  EXPECT_EQ(shorter.status, 1);
  EXPECT_THAT(shorter.err, HasSubstr("3 lines"));
}

TEST_F(ScoreVerb, ALineOutForALineInWhateverTheBatches) {
  const std::string source = kText[0] + "\n\n" + kText[4] + "\n" + kText[1] + "\n";
  const std::string target = kText[1] + "\n\n\n" + kText[0];
  const ToolResult all = score_text(source, target);
  ASSERT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.err, IsEmpty());
  const auto lines = lines_of(all.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines_of(score_text(kText[4], "\n").out), std::vector<std::string>{lines[2]});
  EXPECT_EQ(score_text(source, target, "--max-batch-tokens 1 --threads 3").out, all.out);
  const std::string file = scratch / "out";
  EXPECT_THAT(score_text(source, target, "-o '" + file + "'").out, IsEmpty());
  EXPECT_EQ(scratch.read("out"), all.out);
  EXPECT_THAT(score_text("", "").out, IsEmpty());
}

TEST_F(ScoreVerb, TokenIdsAreScoredAsTheText) {
  const auto ids = [&](const std::string& line) {
    std::string text;
    for (const int32_t id : tokenizer.encode_ids(line)) text += std::to_string(id) + " ";
    return text + "\n";
  };
  const std::string text = score_text(kText[0], kText[1]).out;
  EXPECT_EQ(score_text(ids(kText[0]), ids(kText[1]), "--token-ids").out, text);
  EXPECT_NE(score_text(kText[0], kText[1], "--mute decoder.0.cross_attention.1").out, text);
}

TEST_F(ScoreVerb, LongLinesAreCutAndReported) {
  std::string long_line;
  for (int i = 0; i < 40; ++i) long_line += "cat ";
  const ToolResult found = score_text("a cat\n" + long_line, "a cat\n" + long_line);
  EXPECT_EQ(found.status, 0);
  EXPECT_EQ(lines_of(found.out).size(), 2u);
  EXPECT_THAT(found.err, HasSubstr("1 of 2 lines cut to the 19 tokens that the model reads, at its end; "));
  EXPECT_THAT(found.err, HasSubstr("/s line 2 has "));
  EXPECT_THAT(found.err, HasSubstr("/t line 2 has "));
  expect_error(score_text("a cat\n" + long_line, "a cat\na cat", "--strict"), 1, "leave out --strict");
  EXPECT_THAT(score_text(long_line, long_line, "--quiet").err, IsEmpty());
}

TEST_F(ScoreVerb, BadInputIsOneLineAndAStatus) {
  expect_error(score_text("a\nb\n", "a\n"), 1, "has 2 lines, but " + (scratch / "t") + " has 1");
  expect_error(score_text("a\nb\n", ""), 1, "has 0");
  expect_error(score_text("a\n\xff\n", "a\nb\n"), 1, "/s: line 2: byte 1 (0xff) is not UTF-8");
  expect_error(score_text("a\n", "a\n", "--max-batch-tokens 0"), 2, "--max-batch-tokens: expected");
  expect_error(score_text("a\n", "a\n", "--mute decoder.7.cross_attention.0"), 2,
               "decoder.7.cross_attention");
  expect_error(score_text("1 x\n", "1\n", "--token-ids"), 1, "/s line 1");
  expect_error(score_text("1\n", "99999\n", "--token-ids"), 1, "got 99999");
  expect_error(run_tool("score --model '" + folder + "' --source '" + (scratch / "none") + "' --target x"), 1,
               "none");
  expect_error(run_tool("score"), 2, "the model folder is missing; give it as multihead score MODEL");
}

TEST(ScoreOfTexts, IsThePerplexityOfTransformers) {
  const auto& golden = test::generate_golden()["perplexities"];
  const std::string model = "score '" + test::generate_folder().string() + "' ", text = golden["text"];
  for (const auto& expected : golden["found"]) {
    const std::string flags = model + "--document --context " + expected["context"].dump() + " --stride " +
                              expected["stride"].dump() + " ";
    const ToolResult result = run_tool(flags, text);
    EXPECT_EQ(result.status, 0) << result.err;
    ASSERT_THAT(result.out, testing::StartsWith("perplexity "));
    EXPECT_NEAR(std::stod(result.out.substr(11)) / expected["perplexity"].get<double>(), 1, 1e-4);
    EXPECT_THAT(result.out, HasSubstr(", 106 tokens of 1 text, log-probability -"));
    std::istringstream numbers(run_tool(flags + "--per-token", text + "\n").out);
    double number = 0;
    numbers >> number;
    for (const auto& token : expected["log_probabilities"]) {
      ASSERT_TRUE(numbers >> number);
      EXPECT_NEAR(number, token.get<double>(), 2e-4);
    }
    EXPECT_FALSE(numbers >> number);
  }
}

TEST(ScoreOfTexts, EachLineIsATextByDefault) {
  const ScratchFolder scratch;
  const std::string model = "score '" + test::generate_folder().string() + "' ";
  const std::string file = scratch.write("text", "two dogs run\n\nthe sky\n");
  const auto lines = lines_of(run_tool(model + "--per-line -i '" + file + "'").out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], "0.000000 0 -");
  double sum = 0, tokens = 0, perplexity = 0;
  std::istringstream(lines[0]) >> sum >> tokens >> perplexity;
  EXPECT_NEAR(perplexity, std::exp(-sum / tokens), 1e-4 * perplexity);
  EXPECT_THAT(run_tool(model + "-i '" + file + "'").out, HasSubstr("tokens of 3 texts"));
  EXPECT_NE(run_tool(model + "-i '" + file + "' --mute decoder.0.self_attention.0").out,
            run_tool(model + "-i '" + file + "'").out);
  expect_error(run_tool(model, "a"), 1, "standard input: no token follows another");
  expect_error(run_tool(model + "--context 68", "two dogs"), 2,
               "--context: expected 2 to the model's longest 67");
  expect_error(run_tool(model + "--stride 67", "two dogs"), 2, "--stride: expected 1 to 66");
  expect_error(run_tool(model + "--source '" + file + "' --target '" + file + "'"), 2, "does not translate");
}

TEST_F(ScoreVerb, AFolderWithoutTokenizerIsScoredByIds) {
  const std::string bare = scratch / "bare";
  save_model_folder(bare, model);
  const std::string files = "score '" + bare + "' --source '" + scratch.write("s", "5 6\n") + "' --target '" +
                            scratch.write("t", "7\n") + "'";
  expect_error(run_tool(files), 1, "put the model's tokenizer there, or give --token-ids\n");
  EXPECT_EQ(run_tool(files + " --token-ids").status, 0);
}

TEST_F(ScoreVerb, ATranslatorWantsPairs) {
  expect_error(run_tool("score '" + folder + "'", "a"), 2, "translates: give its sources with --source");
  expect_error(run_tool("score '" + folder + "' --source x"), 2, "--target");
}

}  // namespace
}  // namespace mh

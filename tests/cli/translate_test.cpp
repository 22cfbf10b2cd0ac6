// multihead translate and multihead score, on a small model with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "multihead/generate/score.h"
#include "multihead/generate/translate.h"
#include "multihead/models/model_folder.h"
#include "multihead/text/train_tokenizer.h"
#include "tests/cli/run_tool.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

const std::vector<std::string> kText{
    "the small dog sees a cat", "a cat runs", "dogs see the cats and run", "the dog", "small cats",
    "a small dog runs and sees"};

class TranslateVerb : public testing::Test {
 protected:
  static Tokenizer make_tokenizer() {
    return train_bpe(kText, {.vocabulary_size = 60, .least_pair_count = 1});
  }

  TranslateVerb() : tokenizer(make_tokenizer()), model(make_config(tokenizer)) {
    model.initialise(23);
    // Sentences of useful lengths: sharp distributions, and an end that is not too rare.
    model.visit([](const std::string& name, Parameter& parameter) {
      const MatrixView view = parameter.value.view();
      if (name == "logits_bias") {
        view(0, kEndId) = 2;
      } else if (name.find("norm") == std::string::npos) {
        for (int64_t i = 0; i < view.rows; ++i) {
          for (int64_t j = 0; j < view.cols; ++j) view(i, j) *= 1.7f;
        }
      }
      parameter.changed();
    });
    folder = scratch / "model";
    save_model_folder(folder, model, {.tokenizer = &tokenizer});
  }

  static TransformerConfig make_config(const Tokenizer& tokenizer) {
    TransformerConfig config;
    config.vocabulary_size = tokenizer.size();
    config.d_model = 24;
    config.encoder_layers = 2;
    config.decoder_layers = 2;
    config.encoder_heads = config.decoder_heads = 3;
    config.encoder_ff = config.decoder_ff = 37;
    config.max_positions = 19;
    config.pad_id = config.decoder_start_id = kPadId;
    config.eos_id = kEndId;
    return config;
  }

  std::vector<std::vector<int32_t>> sources(const std::vector<std::string>& lines) const {
    std::vector<std::vector<int32_t>> ids;
    for (const auto& line : lines) ids.push_back(tokenizer.encode_ids(line));
    return ids;
  }
  ToolResult translate_text(const std::string& flags, std::string_view input) const {
    return run_tool("translate --model '" + folder + "' " + flags, input);
  }

  ScratchFolder scratch;
  Tokenizer tokenizer;
  Transformer model;
  std::string folder;
};

TEST_F(TranslateVerb, ALineOutForALineIn) {
  const std::vector<std::string> text{kText[0], kText[3], kText[2]};
  const auto expected = translate(model, sources(text), {.search = {.beam_size = 3, .max_length = 9}});
  const auto found =
      translate_text("--beam-size 3 --max-length 9", text[0] + "\n\n" + text[1] + "\n   \n" + text[2]);
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.err, IsEmpty());
  EXPECT_THAT(lines_of(found.out), ElementsAre(tokenizer.decode(expected[0][0].tokens), "",
                                               tokenizer.decode(expected[1][0].tokens), "",
                                               tokenizer.decode(expected[2][0].tokens)));
  EXPECT_THAT(translate_text("", "").out, IsEmpty());
}

TEST_F(TranslateVerb, FilesBatchesAndThreadsDoNotChangeTheResult) {
  std::string input;
  for (const auto& line : kText) input += line + "\n";
  const std::string file = scratch.write("source", input), output = scratch / "output";
  const auto expected = translate_text("--beam-size 4 --max-length 9", input);
  EXPECT_THAT(lines_of(expected.out), SizeIs(kText.size()));
  const auto found = translate_text(
      "--beam-size 4 --max-length 9 --max-batch-tokens 7 --threads 3 -i '" + file + "' -o '" + output + "'",
      "");
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, IsEmpty());
  EXPECT_EQ(scratch.read("output"), expected.out);
}

TEST_F(TranslateVerb, GreedyIsABeamOfOne) {
  const auto greedy = translate_text("--greedy --max-length 9", kText[2]);
  EXPECT_EQ(greedy.status, 0) << greedy.err;
  EXPECT_EQ(greedy.out, translate_text("--beam-size 1 --max-length 9", kText[2]).out);
  EXPECT_EQ(translate_text("--greedy --beam-size 2", "").status, 2);
}

TEST_F(TranslateVerb, NBestHasIdTextAndScores) {
  const std::vector<std::string> text{kText[0], kText[1]};
  const auto expected =
      translate(model, sources(text), {.search = {.beam_size = 4, .n_best = 3, .max_length = 9}});
  const auto lines = lines_of(
      translate_text("--beam-size 4 --n-best 3 --max-length 9", text[0] + "\n" + text[1] + "\n\n").out);
  ASSERT_EQ(lines.size(), 7u);
  for (size_t i = 0; i < 6; ++i) {
    const Hypothesis& hypothesis = expected[i / 3][i % 3];
    EXPECT_THAT(lines[i],
                StartsWith(std::to_string(i / 3) + " ||| " + tokenizer.decode(hypothesis.tokens) + " ||| "));
    std::istringstream scores(lines[i].substr(lines[i].rfind("||| ") + 4));
    double score = 0, log_probability = 0;
    ASSERT_TRUE(scores >> score >> log_probability);
    EXPECT_NEAR(score, hypothesis.score, 1e-5);
    EXPECT_NEAR(log_probability, hypothesis.log_probability, 1e-5);
  }
  EXPECT_EQ(lines[6], "2 |||  ||| 0.000000 0.000000");
}

TEST_F(TranslateVerb, LengthsPenaltyPrefixAlignmentAndMutedHeads) {
  const auto alignment = translate_text("--alignment --min-length 3 --max-length 7 --token-ids", "7 8 9\n\n");
  ASSERT_EQ(alignment.status, 0) << alignment.err;
  const auto lines = lines_of(alignment.out);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0], MatchesRegex("([0-9]+ )+\\|\\|\\|( [0-2]-[0-9])*"));
  EXPECT_EQ(lines[1], "");
  EXPECT_EQ(lines_of(translate_text("--alignment --n-best 2 --max-length 5", kText[0]).out).size(), 2u);

  const auto prefix = scratch.write("prefix", "9 9\n\n");
  const auto forced =
      lines_of(translate_text("--token-ids --max-length 6 --prefix '" + prefix + "'", "7 8 9\n5 0").out);
  ASSERT_THAT(forced, SizeIs(2));
  EXPECT_THAT(forced[0], StartsWith("9 9"));
  EXPECT_EQ(translate_text("--prefix '" + prefix + "'", "one line").status, 1);

  const std::string plain = translate_text("--n-best 1 --max-length 9", kText[0]).out;
  EXPECT_NE(translate_text("--n-best 1 --max-length 9 --mute decoder.0.cross_attention.1", kText[0]).out,
            plain);
  EXPECT_NE(translate_text("--n-best 1 --max-length 9 --length-penalty-form gnmt", kText[0]).out, plain);
  EXPECT_EQ(
      translate_text("--n-best 1 --max-length 9 --length-penalty-form divide --length-penalty 1", kText[0])
          .out,
      plain);
  const auto wrong = translate_text("--mute decoder.2.cross_attention.1", kText[0]);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("decoder.2.cross_attention"));
}

TEST_F(TranslateVerb, LongLinesAreCutAndReported) {
  std::string ids;
  for (int i = 0; i < 30; ++i) ids += "7 ";
  const auto found = translate_text("--token-ids --max-length 4", "8 9\n" + ids + "\n");
  EXPECT_EQ(found.status, 0);
  EXPECT_THAT(found.err, HasSubstr("standard input line 2: 31 tokens, cut to the model's longest, 19"));
  EXPECT_THAT(translate_text("--quiet --token-ids --max-length 4", ids).err, IsEmpty());
}

TEST_F(TranslateVerb, BadInputIsOneLineAndAStatus) {
  const auto expect = [](const ToolResult& result, int status, const std::string& part) {
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_THAT(lines_of(result.err), SizeIs(1));
  };
  expect(translate_text("--beam-size 0", "x"), 2, "beam size");
  expect(translate_text("--beam-size 2 --n-best 3", "x"), 2, "n-best");
  expect(translate_text("--length-penalty-form half", "x"), 2, "half");
  expect(translate_text("--max-batch-tokens 0", "x"), 2, "max batch tokens");
  expect(translate_text("", "fine\n\xff\xfe\n"), 1, "2");
  expect(translate_text("--token-ids", "3 4\n5 six\n"), 1, "standard input line 2");
  expect(translate_text("--token-ids", "3 4\n5 100000\n"), 2, "source 2");
  expect(translate_text("-i '" + (scratch / "nothing") + "'", ""), 1, "nothing");
  expect(run_tool("translate", ""), 2, "--model");
  expect(run_tool("translate --model '" + (scratch / "no_model") + "'", "x"), 1, "no_model");
  const std::string bare = scratch / "bare";
  save_model_folder(bare, model);
  expect(run_tool("translate --model '" + bare + "'", "x"), 1, "tokenizer");
  EXPECT_EQ(run_tool("translate --token-ids --max-length 3 --model '" + bare + "'", "5 6").status, 0);
  const auto help = run_tool("translate --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("Example"));
}

TEST_F(TranslateVerb, ScoreGivesLogProbabilities) {
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

}  // namespace
}  // namespace mh

// multihead translate, on a small model with random weights.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/generate/translate.h"
#include "multihead/tasks/translate_text.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class TranslateVerb : public SmallFolder {
 protected:
  ToolResult translate_text(const std::string& flags, std::string_view input) const {
    return run_tool("translate --model '" + folder + "' " + flags, input);
  }
};

TEST_F(TranslateVerb, ALineOutForALineIn) {
  const std::vector<std::string> text{kText[0], kText[3], kText[2]};
  const auto expected =
      translate(model, sources(text), {.search = {.beam_size = 3, .max_length = 9, .forced_last = kEndId}});
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

TEST_F(TranslateVerb, TheCacheMayBeOfBfloat16) {
  const std::string flags = "--n-best 1 --beam-size 3 --max-length 9 ";
  const ToolResult usual = translate_text(flags, kText[2]),
                   half = translate_text(flags + "--cache bfloat16", kText[2]);
  ASSERT_EQ(half.status, 0) << half.err;
  EXPECT_EQ(translate_text(flags + "--cache float32", kText[2]).out, usual.out);
  const size_t scores = usual.out.rfind("|||");
  EXPECT_EQ(half.out.substr(0, scores), usual.out.substr(0, scores));
  EXPECT_NE(half.out, usual.out);
  expect_error(translate_text("--cache 16", ""), 2, "--cache: expected float32|bfloat16, got 16");
}

TEST_F(TranslateVerb, NBestHasIdTextAndScores) {
  const std::vector<std::string> text{kText[0], kText[1]};
  const auto expected =
      translate(model, sources(text),
                {.search = {.beam_size = 4, .n_best = 3, .max_length = 9, .forced_last = kEndId}});
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
  const auto alignment = translate_text("--alignment --min-length 3 --max-length 7 --token-ids",
                                        "7 8 9\n\n5 11 6 29 13\n17 8 25\n21 12\n");
  ASSERT_EQ(alignment.status, 0) << alignment.err;
  const auto lines = lines_of(alignment.out);
  ASSERT_THAT(lines, SizeIs(5));
  const std::vector<std::vector<int32_t>> ids{
      {7, 8, 9, kEndId}, {5, 11, 6, 29, 13, kEndId}, {17, 8, 25, kEndId}, {21, 12, kEndId}};
  const auto aligned = translate(
      model, ids,
      {.search = {.min_length = 3, .max_length = 7, .forced_last = kEndId}, .align = AlignOptions{}});
  size_t points = 0;
  for (size_t i = 0; i < aligned.size(); ++i) {
    std::vector<std::string> pairs;
    for (const AlignmentPoint& point : aligned[i][0].alignment)
      pairs.push_back(fmt::format("{}-{}", point.source, point.target));
    points += pairs.size();
    EXPECT_EQ(lines[i == 0 ? 0 : i + 1],
              fmt::format("{} ||| {}", fmt::join(aligned[i][0].tokens, " "), fmt::join(pairs, " ")));
  }
  EXPECT_GT(points, 0u) << "nothing was aligned: give other sources";
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
  EXPECT_THAT(found.err, HasSubstr("standard input line 2 has 31 tokens"));
  EXPECT_THAT(translate_text("--quiet --token-ids --max-length 4", ids).err, IsEmpty());
  expect_error(
      translate_text("--strict --token-ids", ids), 1,
      "standard input line 1 has 31 tokens, but the model reads 19; shorten it, or let it be cut: leave out "
      "--strict");
}

TEST_F(TranslateVerb, BadInputIsOneLineAndAStatus) {
  const auto& expect = expect_error;
  expect(translate_text("--beam-size 0", "x"), 2, "--beam-size: expected an integer from 1 to 255, got 0");
  expect(translate_text("--beam-size 2 --n-best 3", "x"), 2, "n-best");
  expect(translate_text("--length-penalty-form half", "x"), 2,
         "--length-penalty-form: expected divide|gnmt, got half");
  expect(translate_text("--max-batch-tokens 0", "x"), 2, "--max-batch-tokens");
  expect(translate_text("", "fine\n\xff\xfe\n"), 1, "2");
  expect(translate_text("--token-ids", "3 4\n5 six\n"), 1, "standard input line 2");
  expect(translate_text("--token-ids", "3 4\n5 100000\n"), 1,
         fmt::format("standard input line 2: expected token ids from 0 to {}, got 100000",
                     tokenizer.size() - 1));
  expect(translate_text("-i '" + (scratch / "nothing") + "'", ""), 1, "nothing");
  expect(run_tool("translate", ""), 2, "--model");
  expect(run_tool("translate --model '" + (scratch / "no_model") + "'", "x"), 1, "no_model");
  const std::string bare = scratch / "bare";
  save_model_folder(bare, model);
  expect(run_tool("translate --model '" + bare + "'", "x"), 1,
         "bare has no tokenizer.json (OPUS: source.spm); put the model's tokenizer there, or give "
         "--token-ids\n");
  EXPECT_EQ(run_tool("translate --token-ids --max-length 3 --model '" + bare + "'", "5 6").status, 0);
  const auto help = run_tool("translate --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("Example"));
}

// What transformers makes of it tests/tasks/language_codes_test.cpp compares.
TEST(TranslateManyLanguages, FromAndToAreCodesOfTheModel) {
  const std::string folder = goldens_folder() + "/languages/nllb", text = "two dogs run in the park";
  const auto with = [&](const std::string& flags) {
    return run_tool("translate --max-length 24 --early-stopping true --model '" + folder + "' " + flags,
                    text);
  };
  const auto whole = with("--from eng_Latn --to zho_Hant"), other = with("--from en --to de");
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(other.status, 0) << other.err;
  const std::vector<std::string> texts = {text};
  const ModelFolder model = load_model_folder(folder);
  TranslateOptions options{.languages = {"eng", "zho_Hant"}};
  options.search.max_length = 24;
  options.search.early_stopping = EarlyStopping::kTrue;
  EXPECT_THAT(lines_of(whole.out), ElementsAre(translate_text(model, texts, options)[0]));
  options.languages.target_language = "deu_Latn";
  EXPECT_THAT(lines_of(other.out), ElementsAre(translate_text(model, texts, options)[0]));
  expect_error(with("--from eng"), 2, "nothing says its target language: give --to, or put tgt_lang into");
  expect_error(with("--to fr"), 2, "--to: 'fr' is no language of this model, which has deu_Latn, eng_Latn");
  expect_error(with("--from zho --to deu"), 2, "--from: 'zho' may be zho_Hans, zho_Hant; give one of these");
  expect_error(run_tool("translate demo --to de", text), 2, "--to: demo has no codes of languages");
}

TEST(TranslateManyLanguages, EachLineMayHaveItsTarget) {
  const std::string folder = goldens_folder() + "/languages/nllb";
  const auto with = [&](const std::string& flags, const std::string& input) {
    return run_tool(
        "translate --max-length 24 --early-stopping true --model '" + folder + "' --from en " + flags, input);
  };
  const std::string dogs = "two dogs run in the park", cat = "the small dog sees a cat.";
  const auto alone = [&](const std::string& target, const std::string& text) {
    return with("--to " + target, text).out;
  };
  const std::string all =
      alone("de", dogs) + alone("zho_Hant", cat) + "\n" + alone("ro", dogs) + alone("deu", cat);
  const std::string input = "de\t" + dogs + "\nzho_Hant\t" + cat + "\n\nro\t" + dogs + "\ndeu\t" + cat + "\n";
  const auto found = with("--to-column", input);
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(found.out, all);
  EXPECT_EQ(with("--to-column --max-batch-tokens 9", input).out, all);
  EXPECT_NE(alone("de", dogs), alone("ro", dogs));  // the languages matter
  EXPECT_THAT(with("--to-column --n-best 2 --alignment", input).out, HasSubstr("\n4 ||| "));

  expect_error(with("--to-column", "de\ta\nxx\tb\n"), 1,
               "standard input line 2: 'xx' is no language of this model, which has deu_Latn, eng_Latn");
  expect_error(with("--to-column", "de\ta\nzh\tb\n"), 1,
               "standard input line 2: 'zh' may be zho_Hans, zho_Hant; give one of these");
  expect_error(
      with("--to-column", "de a\n"), 1,
      "standard input line 1: expected the language of the translation, a tab and the text, got no tab");
  expect_error(with("--to-column --to de", "de\ta\n"), 2, "--to");
  expect_error(run_tool("translate demo --to-column", "de\ta\n"), 2,
               "--to-column: demo has no codes of languages among which one could choose; leave it out");
}

}  // namespace
}  // namespace mh

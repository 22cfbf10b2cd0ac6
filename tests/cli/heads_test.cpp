// multihead heads, on a small model with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "multihead/base/terminal_text.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/text/train_tokenizer.h"
#include "tests/cli/run_tool.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

class HeadsVerb : public testing::Test {
 protected:
  HeadsVerb() {
    const std::vector<std::string> text{"the small dog sees a cat", "a cat runs", "dogs see the cats",
                                        "a small dog runs and sees"};
    const Tokenizer tokenizer = train_bpe(text, {.vocabulary_size = 40, .least_pair_count = 1});
    TranslatorShape shape;
    shape.vocabulary_size = tokenizer.size();
    shape.d_model = 12;
    shape.encoder_layers = 2;
    shape.decoder_layers = 1;
    shape.encoder_heads = 3;
    shape.decoder_heads = 2;
    shape.encoder_ff = shape.decoder_ff = 11;
    shape.max_positions = 61;
    shape.eos_id = kEndId;
    shape.pad_id = shape.decoder_start_id = kPadId;
    EncoderDecoder model(shape.config());
    model.initialise(3);
    folder = "'" + scratch / "model" + "'";
    save_model_folder(scratch / "model", model, {.tokenizer = &tokenizer});
    source = "-i '" + scratch.write("source", "the small dog sees a cat\n\na cat runs\n") + "'";
    target = "--target '" + scratch.write("target", "a cat\n\ndogs see\n") + "'";
  }

  ScratchFolder scratch;
  std::string folder, source, target;
};

TEST_F(HeadsVerb, TheTableFitsEightyColumnsAndNamesEveryAttention) {
  const ToolResult result = run_tool("heads " + folder + " " + source + " " + target);
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* name : {"encoder.0.self_attention", "encoder.1.self_attention", "decoder.0.self_attention",
                           "decoder.0.cross_attention"}) {
    EXPECT_THAT(result.out, HasSubstr(name));
  }
  EXPECT_THAT(result.out, HasSubstr("2 sentences, targets as given"));  // the empty line is none
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
  EXPECT_EQ(run_tool("--threads 1 heads " + folder + " " + source + " " + target).out, result.out);
}

TEST_F(HeadsVerb, JsonHasEveryHeadAndTheWeightsOfTheTextWithoutTargetByGreedySearch) {
  const ToolResult result = run_tool("heads " + folder + " " + source +
                                     " --json --text 'a small dog' --head encoder.1.self_attention.2");
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["targets"], "greedy translations");
  EXPECT_EQ(json["heads"].size(), 2u * 3 + 2 + 2);
  EXPECT_TRUE(json["heads"][0]["at_offset"].contains("-3"));
  const auto& weights = json["text"]["weights"]["encoder.1.self_attention.2"];
  ASSERT_EQ(weights.size(), json["text"]["source_tokens"].size());
  double sum = 0;
  for (const double weight : weights[0]) sum += weight;
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST_F(HeadsVerb, ScoresTreesAndAlignments) {
  const std::string tree =
      "1\ta\ta\tDET\t_\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\t_\t_\t3\tnsubj\t_\t_\n"
      "3\truns\trun\tVERB\t_\t_\t0\troot\t_\t_\n\n"
      "1\tdogs\tdog\tNOUN\t_\t_\t4\tnsubj\t_\t_\n2\ta\ta\tDET\t_\t_\t3\tdet\t_\t_\n"
      "3\tcat\tcat\tNOUN\t_\t_\t4\tobj\t_\t_\n4\tchase\tchase\tVERB\t_\t_\t0\troot\t_\t_\n"
      "5\ttoday\ttoday\tNOUN\t_\t_\t1\tdep\t_\t_\n\n";
  const std::string trees = "'" + scratch.write("trees", tree) + "'";
  const std::string alignment =
      "--alignment '" + scratch.write("align", "0-0 1-1 2-2\n0-0 1-1 2-2 3-3\n") + "'";
  const std::string both = "heads " + folder + " --conllu " + trees + " --target-conllu " + trees;
  const ToolResult result = run_tool(both + " --least-support 1 " + alignment);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nnsubj "));
  EXPECT_THAT(result.out, HasSubstr("\nEncoder: words that attend most to their syntactic head"));
  EXPECT_THAT(result.out, HasSubstr("no head: none is ever"));
  std::istringstream lines(result.out);
  size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(display_width(line), 80) << line;
    const bool none = line.find(" 0.0  ") == 44 + 5;  // the column of what is correct
    rows += none;
    if (none) {
      EXPECT_THAT(line, HasSubstr("no head")) << "a head that is never right is no best head";
    }
  }
  EXPECT_GT(rows, 0u) << "nothing scored 0: give other trees";
  EXPECT_THAT(result.out, HasSubstr("best fixed offset: same place"));
  const ToolResult wrong =
      run_tool(both + " --alignment '" + scratch.write("wrong", "0-0 1-1 2-3\n0-0\n") + "'");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_EQ(wrong.err, "multihead: " + scratch / "wrong" +
                           ":1: 2-3 points outside a sentence of 3 words and its translation of 3\n");
  // The number of the line in the file, though lines without text are left out.
  const ToolResult third = run_tool("heads " + folder + " " + source + " " + target + " --alignment '" +
                                    scratch.write("third", "0-0\n\n0-5\n") + "'");
  EXPECT_EQ(third.status, 1);
  EXPECT_EQ(third.err, "multihead: " + scratch / "third" +
                           ":3: 0-5 points outside a sentence of 3 words and its translation of 2\n");
  const ToolResult other = run_tool("heads " + folder + " " + source + " --conllu " + trees);
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("has 2 sentences, but"));
}

TEST_F(HeadsVerb, DrawsAndSaves) {
  const std::string saved = scratch / "weights.safetensors", npy = scratch / "weights";
  const ToolResult result =
      run_tool("heads " + folder + " --text 'a small dog' --target-text 'dogs see' --save '" + saved +
               "' --head decoder.0.cross_attention.1");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("decoder.0.cross_attention.1: each target token to come attends to source tokens"));
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
  EXPECT_TRUE(std::filesystem::exists(saved));
  EXPECT_EQ(run_tool("heads " + folder + " --numbers --text 'a cat' --save '" + npy + "'").status, 0);
  EXPECT_TRUE(std::filesystem::exists(npy + "/encoder.1.self_attention.weights.npy"));
}

// Of a sentence as of lines.
TEST_F(HeadsVerb, TellsWhatItCutsAndWhichWordsItDoesNotKnow) {
  std::string line = "the \u6F22\u5B57";
  for (int i = 0; i < 31; ++i) line += " small dog";
  const std::string cut = " cut to the 61 tokens that the model reads, at its end; ";
  const ToolResult lines = run_tool("heads " + folder + " " + target + " -i '" +
                                    scratch.write("long", line + "\n\na cat\n") + "'"),
                   text = run_tool("heads " + folder + " --text '" + line + "' --target-text 'a cat'"),
                   quiet = run_tool("--quiet heads " + folder + " --text '" + line + "'"),
                   of_trace = run_tool("trace " + folder + " --text '" + line + "' --target-text 'a cat'");
  EXPECT_EQ(lines.status, 0) << lines.err;
  EXPECT_THAT(lines.err,
              testing::AllOf(HasSubstr("1 of 2 source lines" + cut), HasSubstr("'\u6F22\u5B57'; the")));
  for (const ToolResult& result : {text, of_trace}) {
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(
        result.err,
        testing::AllOf(HasSubstr("1 of 1 text" + cut + "text 1 has "),
                       HasSubstr("in 1 line, e.g. '\u6F22\u5B57'; the tokenizer does not know them\n")));
  }
  EXPECT_EQ(quiet.status, 0);
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(run_tool("heads " + folder + " --text 'a cat'").err, "");
}

TEST_F(HeadsVerb, ShowsByteLevelTokensAsText) {
  const std::string command =
      "heads " + goldens_folder() + "/gguf/untied_llama3.gguf --text 'the year 2024' ";
  const ToolResult picture = run_tool(command + "--numbers"), json = run_tool(command + "--json");
  ASSERT_EQ(picture.status, 0) << picture.err;
  EXPECT_THAT(picture.out, testing::AllOf(HasSubstr("\u2581"), Not(HasSubstr("\u0120"))));
  EXPECT_THAT(json.out, testing::AllOf(HasSubstr("\"\u0120"), Not(HasSubstr("\u2581"))));
}

TEST_F(HeadsVerb, RefusesNamesOfFormatsThatItDoesNotWrite) {
  const std::string on_text = "heads " + folder + " --text 'a cat' ";
  for (const char* name : {"x.npz", "x.NPY", "x.pt", "x.json", "x.SAFETENSORS"}) {
    const ToolResult result = run_tool(on_text + "--save '" + scratch / name + "'");
    EXPECT_EQ(result.status, 2) << name;
    EXPECT_THAT(
        result.err,
        testing::AllOf(testing::StartsWith("multihead: --save: expected a folder or a name that ends with "
                                           ".safetensors, got "),
                       testing::EndsWith(std::string(name) + "; it writes a folder of .npy files or one "
                                                             ".safetensors file\n")));
    EXPECT_FALSE(std::filesystem::exists(scratch / name)) << name;
  }
  for (const char* name : {"x.png", "x.PDF", "x.svg.gz"}) {
    const ToolResult result = run_tool(on_text + "--svg '" + scratch / name + "'");
    EXPECT_EQ(result.status, 2) << name;
    EXPECT_THAT(result.err, testing::AllOf(HasSubstr("--svg: expected a name that ends with .svg, got "),
                                           HasSubstr("it writes an SVG picture")));
    EXPECT_FALSE(std::filesystem::exists(scratch / name)) << name;
  }
  const ToolResult trace = run_tool("trace --save '" + scratch / "steps.npz" + "'");
  EXPECT_EQ(trace.status, 2);
  EXPECT_THAT(trace.err, HasSubstr("--save: expected a folder, got "));
  for (const std::string& flags :
       {"--save '" + scratch / "weights.v2" + "'", "--save '" + scratch / "w.0.1" + "'",
        "--svg '" + scratch / "x.SVG" + "'", "--svg '" + scratch / "picture" + "'"}) {
    const ToolResult result = run_tool(on_text + flags);
    EXPECT_EQ(result.status, 0) << flags << ": " << result.err;
  }
  EXPECT_TRUE(std::filesystem::is_directory(scratch / "weights.v2"));
}

TEST_F(HeadsVerb, DrawsIntoSvg) {
  const std::string file = scratch / "heads.svg",
                    command = "heads " + folder + " --text 'a <small> dog' --svg '" + file + "'";
  ASSERT_EQ(run_tool(command + " --head encoder.0.self_attention.1").status, 0);
  const std::string one = scratch.read("heads.svg");
  EXPECT_THAT(one, HasSubstr(">encoder.0.self_attention.1<"));
  EXPECT_THAT(one, Not(HasSubstr("<small>")));
  ASSERT_EQ(run_tool(command).status, 0);
  const std::string all = scratch.read("heads.svg");
  for (const char* name : {"encoder.0.self_attention", "encoder.1.self_attention", "decoder.0.self_attention",
                           "decoder.0.cross_attention"}) {
    EXPECT_THAT(all, HasSubstr(">" + std::string(name) + "<"));
  }
  EXPECT_NE(run_tool(command + "/no/where").status, 0);
}

TEST_F(HeadsVerb, LongTranslationsAreWrapped) {
  const ToolResult result =
      run_tool("heads " + folder + " --text 'the small dog sees a cat' --target-text '" +
               "the small dog sees a cat the small dog sees a cat the small dog sees" + "'");
  ASSERT_EQ(result.status, 0) << result.err;
  const ToolResult greedy = run_tool("heads " + folder + " --text 'the small dog sees a cat and runs'");
  for (const std::string& out : {result.out, greedy.out}) {
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
  }
}

TEST_F(HeadsVerb, MutingLaterHeadsLeavesEarlierOnesAlone) {
  const std::string command = "heads " + folder + " --text 'a small dog' --target-text 'dogs see' --head ";
  const std::string mute = " --mute encoder.0.self_attention.1";
  EXPECT_EQ(run_tool(command + "encoder.0.self_attention.0 --numbers").out,
            run_tool(command + "encoder.0.self_attention.0 --numbers" + mute).out);
  EXPECT_NE(run_tool(command + "encoder.1.self_attention.0 --json").out,
            run_tool(command + "encoder.1.self_attention.0 --json" + mute).out);
}

TEST_F(HeadsVerb, FlagsThatCannotBeAreUsageErrorsOfOneLine) {
  for (const std::string flags :
       {"--head encoder.0.self_attention.1", "--text a --head encoder.0.cross_attention.1",
        "--text a --head encoder.0.self_attention.3", "--text a --head encoder.2.self_attention.0",
        "--text a --mute decoder.5.self_attention.0", "--text a --head x", "--save x", "--alignment x",
        "--text a --max-batch-tokens 0", "--numbers", "--svg x", "--least-support 3", "--text a --target x",
        "--text a --target-conllu x", "--text a --numbers --json",
        "--text a --svg x --head encoder.0.self_attention.3"}) {
    const ToolResult result = run_tool("heads " + folder + " " + flags);
    EXPECT_EQ(result.status, 2) << flags << ": " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_EQ(run_tool("heads").status, 2);
  EXPECT_EQ(run_tool("heads '" + scratch / "missing" + "' --text a").status, 1);
  EXPECT_EQ(run_tool("heads " + folder, "").status, 1) << "no text at all";
  EXPECT_EQ(run_tool("heads " + folder + " -i '" + scratch.write("short", "a\n") + "' " + target).status, 1);
}

TEST(HeadsHelp, HasAnExample) {
  const ToolResult result = run_tool("heads --help");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("Example:\n  multihead heads model -i test.en"));
}

}  // namespace
}  // namespace mh

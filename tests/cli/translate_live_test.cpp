// multihead translate as lines come and go: pipes that pause, terminals, and many lines at once.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/live_tool.h"
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class TranslateLive : public SmallFolder {
 protected:
  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"translate", folder, "--max-length", "7"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string translation(const std::string& line) const {
    return lines_of(run_tool("translate '" + folder + "' --max-length 7", line).out).at(0);
  }
};

TEST_F(TranslateLive, APipeGetsEachAnswerBeforeItsNextLine) {
  LiveTool tool(arguments({"--n-best", "1"}), LiveTool::Input::kPipe);
  for (size_t i = 0; i < 3; ++i) {
    tool.write(kText[i] + "\n");
    // Read before anything else is written, or the pipe is closed: a tool that waits would wait for ever.
    EXPECT_THAT(tool.line(), StartsWith(std::to_string(i) + " ||| " + translation(kText[i]) + " |||"));
  }
  tool.write(kText[3]);  // without a line end
  tool.close_input();
  EXPECT_THAT(tool.line(), StartsWith("3 ||| " + translation(kText[3])));
  EXPECT_EQ(tool.exit_status(), 0);
  EXPECT_THAT(tool.error_line(), IsEmpty());
}

TEST_F(TranslateLive, ATerminalGetsAnAnswerToEachLineAndIsToldSo) {
  LiveTool tool(arguments(), LiveTool::Input::kTerminal);
  EXPECT_THAT(tool.error_line(),
              "multihead: reading from the terminal; each line is translated at once; Ctrl-D on an empty "
              "line ends");
  for (const std::string& line : {kText[1], kText[4]}) {
    tool.write(line + "\n");
    EXPECT_EQ(tool.line(), translation(line));
  }
  tool.write("\x04");  // Ctrl-D
  EXPECT_EQ(tool.exit_status(), 0);
  EXPECT_THAT(tool.error_line(), IsEmpty());
}

TEST_F(TranslateLive, ATerminalIsNotSpokenToWhenItShallBeQuiet) {
  LiveTool tool(arguments({"--quiet"}), LiveTool::Input::kTerminal);
  tool.write("\x04");
  EXPECT_EQ(tool.exit_status(), 0);
  EXPECT_THAT(tool.error_line(), IsEmpty());
}

TEST_F(TranslateLive, UnknownWordsOfATerminalAreNamedLineByLine) {
  LiveTool tool(arguments(), LiveTool::Input::kTerminal);
  tool.error_line();
  for (const char* character : {"\u6f22", "\u2603"}) {
    tool.write(std::string("the ") + character + "\n");
    EXPECT_THAT(tool.error_line(), HasSubstr(std::string("in 1 line, e.g. '") + character + "'"));
    tool.line();
  }
  tool.write("\x04");
  EXPECT_EQ(tool.exit_status(), 0);
}

TEST_F(TranslateLive, OtherVerbsSayThatATerminalIsReadToItsEnd) {
  LiveTool tool({"tokenize", "--model", folder}, LiveTool::Input::kTerminal);
  EXPECT_THAT(tool.error_line(), HasSubstr("reading from the terminal; Ctrl-D on an empty line ends"));
  tool.write("a cat\n\x04");
  EXPECT_THAT(tool.line(), HasSubstr("cat"));
  EXPECT_EQ(tool.exit_status(), 0);
}

// More lines than a block holds: numbers and prefixes go on, and a file of them is the same.
TEST_F(TranslateLive, BlocksDoNotShow) {
  constexpr size_t kLines = 100'003;
  std::string text, prefixes;
  for (size_t i = 0; i < kLines; ++i) {
    const bool full = i % 25'000 == 1;
    text += full ? kText[i % kText.size()] + "\n" : "\n";
    prefixes += full ? "9 8\n" : "\n";
  }
  const std::string prefix = scratch.write("prefix", prefixes), file = scratch.write("text", text);
  const std::string verb = "translate '" + folder + "' --max-length 6 --n-best 1 --prefix '" + prefix + "' ";
  std::string ids;
  for (const auto& line : lines_of(text))
    ids += line.empty() ? "\n" : fmt::format("{}\n", fmt::join(tokenizer.encode_ids(line), " "));
  const ToolResult piped = run_shell("cat | \"$MULTIHEAD\" " + verb + "--token-ids", ids);
  ASSERT_EQ(piped.status, 0) << piped.err;
  const auto lines = lines_of(piped.out);
  ASSERT_THAT(lines, SizeIs(kLines));
  EXPECT_THAT(lines[100'001], StartsWith("100001 ||| 9 8 "));
  EXPECT_THAT(lines[100'002], StartsWith("100002 |||  ||| 0"));
  EXPECT_THAT(lines[50'001], StartsWith("50001 ||| 9 8 "));
  const std::string output = scratch / "output";
  ASSERT_EQ(run_tool(verb + "--token-ids -i '" + scratch.write("ids", ids) + "' -o '" + output + "'").status,
            0);
  EXPECT_EQ(scratch.read("output"), piped.out);
  const auto wrong = run_tool(verb + "--token-ids", ids.substr(0, ids.size() - 1) + "\n\n\n");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("prefix: expected a line for each line of standard input, got 100003"));
}

TEST_F(TranslateLive, UnknownWordsAreCountedAndNamedOnce) {
  const std::string text = "the \u6f22\u5b57 sees\na cat\n\u2603 \x1b[31m\n";
  const auto found = run_tool("translate '" + folder + "' --max-length 5", text);
  EXPECT_EQ(found.status, 0);
  ASSERT_THAT(lines_of(found.err), SizeIs(1));
  EXPECT_THAT(found.err, HasSubstr("unknown tokens in 2 lines, e.g. '\u6f22\u5b57', '\u2603'"));
  EXPECT_THAT(found.err, HasSubstr("\\u001b"));
  EXPECT_THAT(run_tool("translate '" + folder + "' --max-length 5 --quiet", text).err, IsEmpty());
  EXPECT_THAT(run_tool("translate '" + folder + "' --max-length 5", "a cat\n").err, IsEmpty());
  const std::string file = scratch.write("text", text);
  EXPECT_THAT(run_tool("score '" + folder + "' --source '" + file + "' --target '" + file + "'").err,
              HasSubstr("unknown tokens in 4 lines"));
}

TEST_F(TranslateLive, LimitsAreToldByTheirFlags) {
  const std::string verb = "translate '" + folder + "' --max-length 3 ";
  expect_error(
      run_tool(verb + "--max-line-characters 5", "a cat\nthe dog\n"), 1,
      "standard input: line 2 has more than 5 characters; break it up, or raise --max-line-characters");
  EXPECT_EQ(run_tool(verb + "--max-line-characters 5", "a cat\n").status, 0);
  const std::string gzip = "gzip -c | \"$MULTIHEAD\" " + verb;
  expect_error(run_shell(gzip + "--max-unpacked 7", "a cat\nthe dog\n"), 1,
               "standard input unpacks to more than 7 bytes; raise --max-unpacked if that is meant");
  EXPECT_EQ(run_shell(gzip, "a cat\nthe dog\n").status, 0);
  const std::string file = scratch.write("long", "a cat and a dog\n");
  for (const char* verb_and_files :
       {"score '{0}' --source '{1}' --target '{1}'", "heads '{0}' -i '{1}'",
        "convert '{0}' --out '{0}-2' --to merged --source '{1}' --target '{1}'", "tokenize '{0}' -i '{1}'",
        "bleu '{1}' -i '{1}'",
        "train --model '{0}-3' --updates 1 --train-source '{1}' --train-target '{1}'"}) {
    expect_error(
        run_tool(fmt::format(fmt::runtime(verb_and_files), folder, file) + " --max-line-characters 5"), 1,
        "long: line 1 has more than 5 characters");
  }
}

// The input ends only when nobody reads it any more, so a tool that read it first would not come back.
TEST_F(TranslateLive, AnOutputThatCannotBeIsRefusedBeforeTheInputIsRead) {
  for (const char* verb : {"translate", "tokenize", "heads"}) {
    const std::string tool = fmt::format("yes 'a cat' | \"$MULTIHEAD\" {} '{}' -o ", verb, folder);
    expect_error(run_shell(tool + "/no/such/folder/out"), 1, "/no/such/folder");
    expect_error(run_shell(tool + "/proc/out"), 1, "/proc/out");
  }
}

TEST_F(TranslateLive, AlignmentFlagsNeedTheAlignment) {
  for (const char* flag : {"--alignment-head 1", "--alignment-layer 0"}) {
    expect_error(run_tool("translate '" + folder + "' " + flag, "a cat"), 2, "--alignment");
    EXPECT_EQ(run_tool("translate '" + folder + "' --max-length 4 --alignment " + flag, "a cat").status, 0);
  }
}

TEST_F(TranslateLive, AlignmentAutoChoosesTheHeads) {
  const std::string text = "the small dog sees a cat .\n\ntwo dogs run .\nthe woman reads the old book .\n";
  const std::string file = scratch.write("to_align", text);
  const std::string best = run_tool("translate demo --alignment auto", text).out;
  EXPECT_EQ(lines_of(best).size(), 4u);
  EXPECT_THAT(lines_of(best)[2], HasSubstr(" ||| 0-0 1-1 2-2"));
  EXPECT_EQ(run_tool("translate demo --alignment auto -i '" + file + "'").out, best);
  // Of the words behind the flag it takes its own alone.
  EXPECT_EQ(run_tool("translate --alignment demo -i '" + file + "'").status, 0);
  EXPECT_EQ(run_tool("translate demo --alignment=auto -i '" + file + "'").out, best);
  expect_error(run_tool("translate demo --alignment=all", "a"), 2, "expected auto or nothing, got all");
  expect_error(run_tool("translate demo --alignment auto --alignment-head 1", "a"), 2,
               "leave out --alignment-layer");
  EXPECT_EQ(run_tool("translate demo --alignment auto", "\n\n").out, "\n\n");

  const std::string own = scratch / "aligned";
  ASSERT_EQ(run_tool("convert demo --dtype float32 --out '" + own + "'").status, 0);
  ASSERT_EQ(run_tool("heads alignment '" + own + "' --no-gold --save -i '" + file + "'").status, 0);
  EXPECT_THAT(scratch.read("aligned/generation_config.json"), HasSubstr("alignment_heads"));
  EXPECT_EQ(run_tool("translate '" + own + "' --alignment auto", text).out, best);
  ASSERT_EQ(run_tool("convert '" + own + "' --permute 1,0,2,3 --out '" + own + "2'").status, 0);
  EXPECT_THAT(scratch.read("aligned2/generation_config.json"), testing::Not(HasSubstr("alignment_heads")));
}

TEST_F(TranslateLive, ComparesWithAndWithoutHeads) {
  const std::string verb = "translate '" + folder + "' --max-length 9 ", head = "decoder.0.cross_attention.1";
  std::string text;
  for (const auto& line : kText) text += line + "\n\n";
  const auto with = lines_of(run_tool(verb, text).out),
             without = lines_of(run_tool(verb + "--mute " + head, text).out);
  size_t changed = 0;
  for (size_t i = 0; i < with.size(); ++i) changed += with[i] != without[i];
  ASSERT_GT(changed, 0u) << "mute another head";
  ASSERT_LT(changed, kText.size()) << "mute another head";
  const auto found = run_tool(verb + "--compare --mute " + head, text);
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr(fmt::format("\n{} of {} translations changed\n", changed, kText.size())));
  EXPECT_THAT(found.out, HasSubstr("ALL HEADS"));
  size_t shown = 0;
  for (size_t i = 0; i < with.size(); ++i) {
    const bool is_shown = found.out.find(fmt::format("line {}: ", i + 1)) != std::string::npos;
    EXPECT_EQ(is_shown, with[i] != without[i]) << i;
    shown += is_shown;
  }
  EXPECT_EQ(shown, changed);
  for (const auto& line : lines_of(found.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(run_tool(verb + "--compare --mute " + head, "\n").out, "nothing to translate\n");
  expect_error(run_tool(verb + "--compare", text), 2, "--mute");
  expect_error(run_tool(verb + "--compare --n-best 2 --mute " + head, text), 2, "--n-best");
}

}  // namespace
}  // namespace mh

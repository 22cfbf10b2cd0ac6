// multihead generate, on the small GPT-2 whose texts transformers wrote down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/text/unicode.h"
#include "tests/cli/live_tool.h"
#include "tests/cli/small_folder.h"
#include "tests/generate/generate_golden.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kModel = "generate '" + test::generate_folder().string() + "' ";

/// What transformers makes of a prompt, by greedy or by beam search.
const json& golden(const std::string& prompt, bool beam = false) {
  for (const json& one : test::generate_golden()["generated"]) {
    const json& options = one["options"];
    if (one["prompt"] == prompt && options.contains("num_beams") == beam && !options.contains("stop_strings"))
      return one;
  }
  throw UsageError("no golden of " + prompt);
}

TEST(GenerateVerb, GreedyTextIsThatOfTransformersHoweverThePromptComes) {
  const std::string prompt = golden("two")["prompt"],
                    expected = golden("two")["text"].get<std::string>() + "\n";
  const std::string flags = kModel + "--greedy --max-new-tokens 25 ";
  EXPECT_EQ(run_tool(flags + "--prompt '" + prompt + "'").out, expected);
  EXPECT_EQ(run_tool(flags, prompt).out, expected);
  EXPECT_EQ(run_tool(flags, prompt + "\n").out, expected);
  const ScratchFolder scratch;
  EXPECT_EQ(run_tool(flags + "-i '" + scratch.write("in", prompt) + "'").out, expected);
  EXPECT_THAT(run_tool(flags + "--prompt '" + prompt + "' -o '" + (scratch / "out") + "'").out, IsEmpty());
  EXPECT_EQ(scratch.read("out"), expected);
}

TEST(GenerateVerb, APromptALineGivesATextALine) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("in", "two\n\nthe small dog\nthe sky\n");
  const std::string flags = kModel + "--max-new-tokens 23 --temperature 2 --seed 3 ";
  const ToolResult all = run_tool(flags + "-i '" + file + "'");
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(lines_of(all.out), SizeIs(4));
  EXPECT_EQ(run_tool(flags + "-i '" + file + "' --max-batch-tokens 1 --threads 3").out, all.out);
  EXPECT_NE(run_tool(flags + "--seed 4 -i '" + file + "'").out, all.out);
  EXPECT_NE(run_tool(flags + "--mute decoder.1.self_attention.2 -i '" + file + "'").out, all.out);
  // Two prompts by flag are the first two numbers.
  EXPECT_EQ(lines_of(run_tool(flags + "--prompt two --prompt 'x y'").out)[0], lines_of(all.out)[0]);
}

TEST(GenerateVerb, JsonHasTokensProbabilitiesAndTheEnd) {
  const ToolResult result =
      run_tool(kModel + "--greedy --max-new-tokens 25 --json --prompt two --prompt does");
  const auto lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const json line = json::parse(lines[i]), &expected = golden(i == 0 ? "two" : "does");
    EXPECT_EQ(line["prompt"], expected["prompt"]);
    EXPECT_EQ(line["text"], expected["text"]);
    EXPECT_EQ(line["end"], "end_token");
    EXPECT_EQ(line["prompt_tokens"], expected["prompt_ids"]);
    ASSERT_EQ(line["tokens"].size() + 1, expected["tokens"].size());
    for (size_t t = 0; t < line["tokens"].size(); ++t) {
      EXPECT_EQ(line["tokens"][t]["id"], expected["tokens"][t]);
      EXPECT_NEAR(line["tokens"][t]["log_probability"].get<double>(),
                  expected["log_probabilities"][t].get<double>(), 1e-4);
    }
  }
  const json beam =
      json::parse(run_tool(kModel + "--beam-size 3 --length-penalty 0 --max-new-tokens 11 --json "
                                    "--prompt 'the small dog'")
                      .out);
  EXPECT_EQ(beam["end"], "max_new_tokens");
  const json& expected = golden("the small dog", true);
  EXPECT_EQ(beam["text"], expected["text"]);
  for (size_t t = 0; t < beam["tokens"].size(); ++t) {
    EXPECT_NEAR(beam["tokens"][t]["log_probability"].get<double>(),
                expected["log_probabilities"][t].get<double>(), 1e-4);
  }
}

TEST(GenerateVerb, StopsBeforeStopStrings) {
  const std::string text = golden("two")["text"];
  const std::string stop = text.substr(text.find('4'), 4);
  const json line = json::parse(
      run_tool(kModel + "--greedy --max-new-tokens 25 --json --prompt two --stop nothing --stop '" + stop +
               "'")
          .out);
  EXPECT_EQ(line["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(line["end"], "stop");
  const json beam =
      json::parse(run_tool(kModel + "--beam-size 3 --max-new-tokens 11 --json --prompt 'the small dog' "
                                    "--stop H")
                      .out);
  EXPECT_EQ(beam["end"], "stop");
  EXPECT_EQ(beam["tokens"].size(), 4u);
}

TEST(GenerateVerb, ATerminalSeesTheTextAsItComes) {
  LiveTool tool({"generate", test::generate_folder().string(), "--greedy", "--max-new-tokens", "25"},
                LiveTool::Input::kPipe);
  tool.write(golden("two")["prompt"].get<std::string>());
  tool.close_input();
  EXPECT_EQ(tool.line(), golden("two")["text"].get<std::string>());
  EXPECT_EQ(tool.exit_status(), 0);
}

TEST(GenerateVerb, Chats) {
  const std::string flags =
      kModel + "--greedy --max-new-tokens 3 --json --chat --prompt 'Hi there' --system ";
  const json line = json::parse(run_tool(flags + "x").out);
  EXPECT_EQ(line["prompt"], "Hi there");
  EXPECT_EQ(line["prompt_tokens"][0], 1);  // <|im_start|>
  EXPECT_NE(json::parse(run_tool(flags + "'Be short.'").out)["prompt_tokens"], line["prompt_tokens"]);
  // With the template's own system message the prompt is too long for this model.
  expect_error(run_tool(kModel + "--chat --prompt Hi"), 1, "give a shorter system message");
  expect_error(run_tool(kModel + "--system x --prompt y"), 2, "--chat");
}

std::string message(const char* role, const std::string& content) {
  return json{{"role", role}, {"content", content}}.dump() + "\n";
}

TEST(GenerateVerb, AnswersTheLastMessageOfAChat) {
  const ScratchFolder scratch;
  const std::string flags = kModel + "--greedy --max-new-tokens 3 --json ";
  const std::string file = "'" +
                           scratch.write("talk", message("system", "x") + message("user", "a") +
                                                     message("assistant", "b") + message("user", "Hi")) +
                           "'";
  const ToolResult result = run_tool(flags + "--chat " + file);
  ASSERT_EQ(result.status, 0) << result.err;
  const json line = json::parse(result.out);
  EXPECT_EQ(line["prompt"], "Hi");
  // One message is the same as a prompt.
  const std::string one = "'" + scratch.write("one", message("user", "Hi")) + "'";
  const json alone = json::parse(run_tool(flags + "--system x --chat " + one).out);
  EXPECT_EQ(alone, json::parse(run_tool(flags + "--system x --chat --prompt Hi").out));
  EXPECT_GT(line["prompt_tokens"].size(), alone["prompt_tokens"].size());

  expect_error(run_tool(flags + "--chat " + file + " --system y"), 2,
               "--system: the chat begins with a system message of its own");
  expect_error(run_tool(flags + "--chat " + file + " --prompt a"), 2, "leave out --prompt and --input");
  expect_error(run_tool(flags + "--chat " + file + " -i " + file), 2, "leave out --prompt and --input");
  expect_error(run_tool(flags + "--chat /no/such.jsonl"), 1, "/no/such.jsonl");
  expect_error(run_tool(flags + "--chat '" + scratch.write("bad", message("user", "a") + "hello\n") + "'"), 1,
               "bad line 2");
  expect_error(run_tool(flags + "--chat '" + scratch.write("last", message("assistant", "a")) + "'"), 1,
               "last: the last message has the role assistant");
  expect_error(run_tool(flags + "--prompt a --chat ''"), 2, "--chat: expected a file, got nothing");
  expect_error(run_tool(flags + "--prompt a --chat="), 2, "--chat needs a value");
  expect_error(run_tool("generate --chat"), 2, "the model folder is missing");
}

TEST(GenerateVerb, AChatFlagMayStandBeforeTheModel) {
  const std::string model = "'" + test::generate_folder().string() + "' ",
                    flags = "--greedy --max-new-tokens 3 --system x --prompt Hi ";
  const std::string expected = run_tool("generate " + model + "--chat " + flags).out;
  EXPECT_NE(expected, "");
  EXPECT_EQ(run_tool("generate --chat " + model + flags).out, expected);
  EXPECT_EQ(run_tool("generate " + flags + "--chat " + model).out, expected);
  EXPECT_EQ(run_tool("generate --chat --model " + model + flags).out, expected);
}

TEST(GenerateVerb, ATerminalChatsOn) {
  const std::vector<std::string> flags{"--chat", "--system", "x", "--greedy", "--max-new-tokens", "3"};
  std::vector<std::string> arguments{"generate", test::generate_folder().string()};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  LiveTool tool(arguments, LiveTool::Input::kTerminal);
  EXPECT_THAT(tool.error_line(), HasSubstr("each line is a message, which is answered at once"));
  const ScratchFolder scratch;
  std::string chat;
  for (const char* said : {"Hi there", "two", "a cat"}) {
    tool.write(std::string(said) + "\n");
    chat += message("user", said);
    const std::string answer = run_tool(kModel + "--greedy --max-new-tokens 3 --system x --chat '" +
                                        scratch.write("talk", chat) + "'")
                                   .out;
    for (const std::string& line : lines_of(answer)) EXPECT_EQ(tool.line(), line);
    chat += message("assistant", answer.substr(0, answer.size() - 1));
    tool.write("\n");  // says nothing
  }
  tool.write("\x04");  // Ctrl-D
  EXPECT_EQ(tool.exit_status(), 0);
  EXPECT_EQ(tool.line(), "");

  arguments.emplace_back("--json");
  LiveTool refused(arguments, LiveTool::Input::kTerminal);
  EXPECT_THAT(refused.error_line(), HasSubstr("--json is not for a chat on the terminal"));
  EXPECT_EQ(refused.exit_status(), 2);
}

TEST(GenerateVerb, ComparesTextsWithAndWithoutHeads) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("in", "two\n\nthe small dog\nthe sky\n"),
                    mute = "--mute 'decoder.1.*' ";
  const std::string flags = kModel + "--max-new-tokens 9 --seed 3 -i '" + file + "' ";
  const auto whole = lines_of(run_tool(flags).out), muted = lines_of(run_tool(flags + mute).out);
  ASSERT_THAT(whole, SizeIs(4));
  int changed = 0;
  for (size_t i = 0; i < 4; ++i) changed += whole[i] != muted[i];
  ASSERT_GT(changed, 0) << "mute more";
  const ToolResult found = run_tool(flags + mute + "--compare");
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("ALL HEADS"));
  EXPECT_THAT(found.out, HasSubstr("\n" + std::to_string(changed) + " of 4 texts changed\n"));
  for (size_t i = 0; i < 4; ++i) {
    const bool shown = found.out.find("in line " + std::to_string(i + 1) + ":") != std::string::npos;
    EXPECT_EQ(shown, whole[i] != muted[i]) << i;
  }
  // The log-probabilities are those of --json.
  double sum = 0;
  for (const std::string& line : lines_of(run_tool(flags + "--json").out))
    sum += json::parse(line)["log_probability"].get<double>();
  const size_t at = found.out.find("mean log-probability of a text: ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NEAR(std::stod(found.out.substr(at + 32)), sum / 4, 0.006);
  const std::string out = scratch / "out";
  EXPECT_THAT(run_tool(flags + mute + "--compare -o '" + out + "'").out, IsEmpty());
  EXPECT_EQ(scratch.read("out"), found.out);
  EXPECT_EQ(run_tool(kModel + mute + "--compare -i '" + scratch.write("none", "") + "'").out,
            "nothing to continue\n");
  expect_error(run_tool(flags + "--compare"), 2, "--mute");
  expect_error(run_tool(flags + mute + "--compare --json"), 2, "--json");
}

TEST(GenerateVerb, SaysThatThePositionsEnd) {
  std::string prompt;
  for (int i = 0; i < 31; ++i) prompt += " cat";
  const ToolResult result = run_tool(kModel + "--seed 9 --top-k 3 --prompt '" + prompt + "'");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, HasSubstr("the text of prompt 1 ends at the model's longest, 67 tokens"));
  // Not in the middle of the text.
  const std::string again = "\"$MULTIHEAD\" " + kModel + "--seed 9 --top-k 3 --prompt '" + prompt + "' 2>&1";
  EXPECT_EQ(run_shell(again).out, result.out + result.err);
}

TEST(GenerateVerb, KeepsKeysAndValuesAsToldTo) {
  const std::string flags = kModel + "--greedy --max-new-tokens 25 --json --prompt two";
  const json usual = json::parse(run_tool(flags).out),
             half = json::parse(run_tool(flags + " --cache bfloat16").out);
  EXPECT_EQ(json::parse(run_tool(flags + " --cache float32").out), usual);
  EXPECT_EQ(half["text"], usual["text"]);
  const double exact = usual["log_probability"], rounded = half["log_probability"];
  EXPECT_NE(rounded, exact);
  EXPECT_NEAR(rounded, exact, 0.05 * std::abs(exact));
  EXPECT_EQ(json::parse(run_tool(flags + " --cache bfloat16 --threads 3").out), half);
  const std::string beam =
      kModel +
      "--beam-size 3 --length-penalty 0 --max-new-tokens 11 --cache bfloat16 --prompt 'the small dog'";
  EXPECT_EQ(run_tool(beam).out, golden("the small dog", true)["text"].get<std::string>() + "\n");
  expect_error(run_tool(flags + " --cache half"), 2, "--cache: expected float32|bfloat16, got half");
  expect_error(run_tool(flags + " --cache ''"), 2, "--cache: expected float32|bfloat16, got nothing");
}

TEST(GenerateVerb, BadInputIsOneLineAndAStatus) {
  expect_error(run_tool(kModel + "--greedy --top-k 5 --prompt a"), 2, "--top-k");
  expect_error(run_tool(kModel + "--beam-size 3 --temperature 2 --prompt a"), 2, "--beam-size");
  expect_error(run_tool(kModel + "--beam-size 3 --repetition-penalty 2 --prompt a"), 2, "--beam-size");
  expect_error(run_tool(kModel + "--temperature 0 --prompt a"), 2, "--temperature: expected");
  expect_error(run_tool(kModel + "--top-p 1.5 --prompt a"), 2, "--top-p: expected");
  expect_error(run_tool(kModel + "--min-p nan --prompt a"), 2, "--min-p: expected");
  expect_error(run_tool(kModel + "--max-new-tokens 0 --prompt a"), 2, "--max-new-tokens: expected");
  expect_error(run_tool(kModel + "--stop '' --prompt a"), 2, "--stop");
  expect_error(run_tool(kModel + "--prompt a --mute decoder.9.self_attention.0"), 2,
               "decoder.9.self_attention");
  expect_error(run_tool(kModel + "--prompt \"$(printf '\\377')\""), 2,
               "--prompt: byte 1 (0xff) is not UTF-8");
  expect_error(run_tool(kModel + "--prompt a --stop \"$(printf 'x\\377')\""), 2,
               "--stop: byte 2 (0xff) is not UTF-8");
  expect_error(run_tool(kModel + "--prompt a --chat --system \"$(printf '\\377')\""), 2,
               "--system: byte 1 (0xff) is not UTF-8");
  expect_error(run_tool(kModel, "a\xff"), 1, "not UTF-8");
  expect_error(
      run_tool("generate '" + (test::generate_folder() / "../../bert/masked").string() + "' --prompt a"), 2,
      "holds a bert model, which reads a text instead of continuing it; name a causal model");
  expect_error(run_tool(kModel + "-i x --prompt y"), 2, "--prompt");
  expect_error(run_tool("generate --prompt a"), 2, "the model folder is missing");
  std::string prompt;
  for (int i = 0; i < 70; ++i) prompt += " cat";
  const ToolResult cut = run_tool(kModel + "--max-new-tokens 7 --prompt '" + prompt + "'");
  EXPECT_EQ(cut.status, 0);
  EXPECT_THAT(cut.err,
              HasSubstr("1 of 1 prompt cut to the 60 tokens that the model reads before 7 new ones"));
  expect_error(run_tool(kModel + "--strict --prompt '" + prompt + "'"), 1, "leave out --strict");
}

class GenerateWithTranslator : public SmallFolder {};

TEST_F(GenerateWithTranslator, SaysWhatTranslates) {
  expect_error(run_tool("generate '" + folder + "' --prompt a"), 2, "name a causal model");
}

}  // namespace
}  // namespace mh

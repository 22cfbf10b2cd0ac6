// What the tool says when something cannot be: one line that is safe and short, whatever was given.
#include <nlohmann/json.hpp>

#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(ErrorLine, EscapesWhatWouldMoveTheCursor) {
  expect_error(run_tool("'\x1b[31mfoo'"), 2, "\\u001b[31mfoo is no verb");
  expect_error(run_tool("info 'a\nb\rc'"), 1, "no model folder a\\u000ab\\u000dc");
  expect_error(run_tool("info '\xe2\x80\xae"
                        "abc'"),
               1, "no model folder \\u202eabc");
  expect_error(run_tool("info '\xff'"), 1, "no model folder \xef\xbf\xbd");
  expect_error(run_tool("translate '--be\x1b[1msize'"), 2, "--be\\u001b[1msize is ");
  expect_error(run_tool("bleu 'no\nfile'"), 1, "no\\u000afile");
}

class ErrorLineOfFolder : public SmallFolder {};

TEST_F(ErrorLineOfFolder, EscapesWhatAConfigSays) {
  const std::string path = folder + "/config.json";
  auto config = nlohmann::json::parse(scratch.read("model/config.json"));
  config["model_type"] = "a\nb\x1b[31m";
  scratch.write("model/config.json", config.dump());
  const ToolResult result = run_tool("info '" + folder + "'");
  expect_error(result, 1, "model_type");
  EXPECT_THAT(result.err, Not(HasSubstr("\x1b")));
}

TEST(ErrorLine, IsCutInTheMiddle) {
  const ToolResult result = run_tool("ledger --geometry \"$(printf '[%.0s' $(seq 30000))\"");
  expect_error(result, 2, "characters left out]");
  EXPECT_LT(result.err.size(), 1200u);
  EXPECT_THAT(result.err, HasSubstr("choose one of"));  // the end, where the remedy stands, is kept
  const ToolResult wide = run_tool("info \"$(printf '\xc3\xa4%.0s' $(seq 1500))\"");
  EXPECT_EQ(wide.status, 1);
  EXPECT_THAT(wide.err, AllOf(HasSubstr("\xc3\xa4 ["), HasSubstr("characters left out] \xc3\xa4")));
}

TEST(EmptyValues, AreNoValues) {
  expect_error(run_tool("train --updates="), 2, "--updates needs a value");
  expect_error(run_tool("translate --beam-size= --max-length 5"), 2, "--beam-size needs a value");
  expect_error(run_tool("translate --beam-size --max-length 5"), 2,
               "--beam-size needs a value, but --max-length follows");
  expect_error(run_tool("--threads= translate"), 2, "--threads needs a value");
  expect_error(run_tool("translate --threads"), 2, "--threads needs a value");
  expect_error(run_tool("tokenize -o"), 2, "-o needs a value");
  expect_error(run_tool("tokenize -o --ids"), 2, "-o needs a value, but --ids follows");
  expect_error(run_tool("tokenize --ids="), 2, "--ids takes no value");
  expect_error(run_tool("data grammar --depth="), 2, "--depth needs a value");
}

TEST(EmptyValues, AreRefusedAsTexts) {
  expect_error(run_tool("tokenize --model m -o ''"), 2, "--output: expected a file, got nothing");
  expect_error(run_tool("tokenize --model m -i ''"), 2, "--input: expected a file, got nothing");
  expect_error(run_tool("tokenize --model ''"), 2, "--model: expected a model, got nothing");
  expect_error(run_tool("info ''"), 2, "--model: expected a model, got nothing");
  expect_error(run_tool("ledger --compare ''"), 2, "--compare: expected GEOMETRY,..., got nothing");
  expect_error(run_tool("ledger --geometry ''"), 2, "--geometry: expected GEOMETRY, got nothing");
  expect_error(run_tool("translate --model ''"), 2, "--model: expected a model, got nothing");
  expect_error(run_tool("heads m --text ''"), 2, "--text: expected ");
  expect_error(run_tool("train --train-source ''"), 2, "--train-source: expected a file, got nothing");
  expect_error(run_tool("study ''"), 2, "name: expected STUDY, got nothing");
  expect_error(run_tool("ledger --tokens ''"), 2,
               "--tokens: expected an integer from 1 to 1048576, got nothing");
  expect_error(run_tool("tokenize --train a --normalization ''"), 2,
               "--normalization: expected nfkc|nfc|none, got nothing");
}

TEST(Ranges, AreThoseOfTheFlag) {
  expect_error(run_tool("data grammar --out x --depth 2147483648"), 2,
               "--depth: expected an integer from 0 to 5, got 2147483648");
  expect_error(run_tool("data grammar --out x --train -1"), 2,
               "--train: expected an integer from 0 to 2000000, got -1");
  expect_error(run_tool("translate --max-length 2147483648"), 2,
               "--max-length: expected an integer from 1 to 2147483647, got 2147483648");
}

TEST_F(ErrorLineOfFolder, RangesOfAConfigAreNeverEmpty) {
  auto config = nlohmann::json::parse(scratch.read("model/config.json"));
  for (const char* key : {"vocab_size", "vocabulary_size"}) {
    if (config.contains(key)) config[key] = -1;
  }
  scratch.write("model/config.json", config.dump());
  const ToolResult result = run_tool("info '" + folder + "'");
  expect_error(result, 1, "vocab");
  EXPECT_THAT(result.err, AllOf(HasSubstr("-1"), Not(HasSubstr("... -2"))));
}

class Limits : public SmallFolder {};

TEST_F(Limits, AFileThatMayNotGrowIsAnError) {
  const std::string text = scratch.write("text", "the dog\na cat\n");
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "a cat runs and the small dog sees\n";
  const std::string many = scratch.write("many", lines), out = scratch / "pieces";
  expect_error(run_shell("ulimit -f 1; \"$MULTIHEAD\" tokenize --model '" + folder + "' -i '" + many +
                         "' -o '" + out + "'"),
               1, "File too large");
  const std::string train = "ulimit -f 1; \"$MULTIHEAD\" --quiet train --train-source '" + text +
                            "' --train-target '" + text + "' --updates 1 --model '" + (scratch / "made") +
                            "' --vocabulary-size 50";
  const ToolResult result = run_shell(train);
  expect_error(result, 1, "File too large");
}

TEST_F(Limits, ThreadsBeyondTheProcessorsAreCapped) {
  const std::string command = "translate --model '" + folder + "' --max-length 5";
  const ToolResult usual = run_tool(command, "a cat\nthe dog\n");
  const ToolResult many = run_tool("--threads 1000 " + command, "a cat\nthe dog\n");
  EXPECT_EQ(many.status, 0);
  EXPECT_EQ(many.out, usual.out);
  EXPECT_THAT(many.err, AllOf(HasSubstr("--threads 1000: this machine has "),
                              HasSubstr(" are used, with the same results")));
  const ToolResult quiet = run_tool("--quiet --threads 1000 " + command, "a cat\n");
  EXPECT_THAT(quiet.err, IsEmpty());
  EXPECT_THAT(run_tool("--threads 2 " + command, "a cat\n").err, IsEmpty());
}

TEST_F(Limits, TheAdviceToGiveAnOutputIsForVerbsThatHaveOne) {
  const auto full = [&](const std::string& verb) {
    return run_shell("\"$MULTIHEAD\" " + verb + " >/dev/full", "a cat\n");
  };
  const std::string advice = "give -o FILE";
  expect_error(full("tokenize --model '" + folder + "'"), 1, advice);
  for (const std::string& verb :
       {"info '" + folder + "'", std::string("trace"), std::string("ledger"), std::string("study")}) {
    const ToolResult result = full(verb);
    expect_error(result, 1, "cannot write to standard output");
    EXPECT_THAT(result.err, Not(HasSubstr(advice))) << verb;
  }
}

TEST_F(Limits, OutOfMemoryIsSaidAsItIs) {
  const std::string little = "ulimit -v 400000; ";  // KiB
  if (run_shell(little + "\"$MULTIHEAD\" --version").status != 0) GTEST_SKIP() << "cannot limit memory here";
  const std::string line = "head -c 300000000 /dev/zero | tr '\\0' a | ";
  expect_error(run_shell(little + line +
                         "\"$MULTIHEAD\" tokenize --max-line-characters 1000000000 --model '" + folder + "'"),
               1, "out of memory; try less at a time");
}

}  // namespace
}  // namespace mh

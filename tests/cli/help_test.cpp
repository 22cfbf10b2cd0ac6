// Every verb has help with an example and a page that lists its flags, and it checks its numbers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kVerbs = {"bleu",
                                         "classify",
                                         "completion",
                                         "check",
                                         "convert",
                                         "data",
                                         "data grammar",
                                         "demo",
                                         "embed",
                                         "fill",
                                         "generate",
                                         "heads",
                                         "info",
                                         "ledger",
                                         "score",
                                         "study",
                                         "tokenize",
                                         "trace",
                                         "train",
                                         "translate",
                                         "view",
                                         "heads stats",
                                         "heads relations",
                                         "heads alignment",
                                         "heads circuits",
                                         "heads similar",
                                         "heads where",
                                         "heads importance",
                                         "heads attribution",
                                         "heads contributions",
                                         "heads lens",
                                         "heads patch",
                                         "heads circuit",
                                         "heads retrieval",
                                         "heads steer",
                                         "heads prune"};

std::string help_of(const std::string& verb, const std::string& flag = "--help-all") {
  const ToolResult result = run_tool(verb + " " + flag);
  EXPECT_EQ(result.status, 0) << verb;
  EXPECT_EQ(result.err, "") << verb;
  return result.out;
}

std::string page_of(const std::string& verb) {
  const std::filesystem::path pages = std::filesystem::path(source_folder()) / "docs/verbs";
  std::ifstream file(pages / (verb.substr(0, verb.find(' ')) + ".md"));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The flags that begin a line of help: "  -i,--input TEXT  ..." is --input.
std::set<std::string> flags_in(const std::string& help, const char* type = "") {
  std::set<std::string> flags;
  const std::regex flag(std::string("^ {2,6}(?:-[a-z], *)?(--[a-z0-9-]+)") + type);
  for (const std::string& line : lines_of(help)) {
    std::smatch found;
    if (std::regex_search(line, found, flag)) flags.insert(found[1]);
  }
  return flags;
}

bool names(const std::string& page, const std::string& flag) {
  return std::regex_search(page, std::regex(flag + "(?![a-z0-9-])"));
}

TEST(Help, ListsTheVerbsThatAreTestedHere) {
  const std::string help = help_of("", "--help");
  for (const std::string& line : lines_of(help)) {
    std::smatch found;
    if (!std::regex_search(line, found, std::regex("^  ([a-z]+)  "))) continue;
    EXPECT_NE(std::find(kVerbs.begin(), kVerbs.end(), found[1]), kVerbs.end()) << found[1];
  }
  for (const std::string& verb : kVerbs)
    EXPECT_THAT(help, HasSubstr("\n  " + verb.substr(0, verb.find(' ')) + " "));
}

TEST(Help, HasAnExampleAndTheFlagsOfEveryVerb) {
  for (const std::string& verb : kVerbs) {
    const std::string help = help_of(verb);
    EXPECT_TRUE(std::regex_search(help, std::regex("Examples?:\n  .*multihead " + verb))) << verb;
    EXPECT_THAT(help, HasSubstr("--threads N")) << verb;
    EXPECT_THAT(help, HasSubstr("--quiet")) << verb;
  }
}

// A command that is cut goes on in the next line, as a shell reads it.
TEST(Help, ExamplesAreCutBeforeFlags) {
  for (const std::string& verb : kVerbs) {
    const std::vector<std::string> lines = lines_of(help_of(verb, "--help"));
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool goes_on = lines[i].ends_with(" \\");
      ASSERT_LT(i + (goes_on ? 1 : 0), lines.size());
      if (goes_on) {
        EXPECT_THAT(lines[i + 1], testing::StartsWith("    --")) << verb << ": " << lines[i];
      }
    }
  }
}

TEST(Help, FitsALineOfATerminal) {
  std::vector<std::string> verbs = kVerbs;
  verbs.emplace_back("");
  for (const std::string& verb : verbs) {
    for (const char* flag : {"--help", "--help-all"}) {
      for (const std::string& line : lines_of(help_of(verb, flag)))
        EXPECT_LE(line.size(), 80u) << verb << " " << flag << ": " << line;
    }
  }
}

TEST(Help, SaysHowManyFlagsItLeavesOut) {
  for (const std::string& verb : kVerbs) {
    const std::string common = help_of(verb, "--help"), all = help_of(verb);
    const std::set<std::string> few = flags_in(common), every = flags_in(all);
    EXPECT_TRUE(std::includes(every.begin(), every.end(), few.begin(), few.end())) << verb;
    const size_t more = every.size() - few.size();
    const std::string told = std::to_string(more) + (more == 1 ? " more flag: " : " more flags: ");
    if (more > 0) {
      EXPECT_THAT(common, HasSubstr(told + "multihead " + verb + " --help-all\n"));
    }
    EXPECT_THAT(more > 0 ? all : common, testing::Not(HasSubstr(" more flag"))) << verb;
  }
  const std::string train = help_of("train", "--help");
  for (const char* flag : {"--config FILE", "--dump-config", "--train-source FILE", "--model DIR"})
    EXPECT_THAT(train, HasSubstr(flag));
  EXPECT_THAT(train, testing::Not(HasSubstr("--adam-beta1")));
}

TEST(Help, NamesWhatAFlagTakes) {
  const std::set<std::string> texts = {"--text",         "--target-text",   "--text-pair",  "--prompt",
                                       "--stop",         "--system",        "--clean",      "--corrupt",
                                       "--answer",       "--wrong",         "--prefix",     "--second",
                                       "--target-token", "--source-prefix", "--prompt-text"};
  for (const std::string& verb : kVerbs) {
    const std::string help = help_of(verb);
    for (const std::string& flag : flags_in(help, " +TEXT"))
      EXPECT_TRUE(texts.contains(flag) || verb + flag == "view--target")
          << flag << " of multihead " << verb << " takes more than a TEXT";
    for (const char* word : {"Excludes", "Needs:", "REQUIRED", "INT", "FLOAT"})
      EXPECT_THAT(help, testing::Not(HasSubstr(word))) << verb;
  }
}

TEST(Help, IsAVerbAsWell) {
  for (const std::string& verb : kVerbs)
    EXPECT_EQ(run_tool("help " + verb).out, help_of(verb, "--help")) << verb;
  EXPECT_EQ(run_tool("help").out, help_of("", "--help"));
  expect_error(run_tool("help trian"), 2, "trian is no verb; did you mean train?");
  expect_error(run_tool("help data grammer"), 2, "grammer is no verb; did you mean grammar?");
  expect_error(run_tool("help info model"), 2, "multihead info has no verbs, but model is given");
  const ToolResult version = run_tool("version");
  EXPECT_EQ(version.status, 0) << version.err;
  EXPECT_EQ(version.out, run_tool("--version").out);
  EXPECT_THAT(version.out, HasSubstr("multihead 0"));
}

TEST(Help, EveryFlagIsOnThePageOfItsVerb) {
  for (const std::string& verb : kVerbs) {
    const std::string page = page_of(verb);
    EXPECT_THAT(page, HasSubstr("# multihead " + verb)) << "docs/verbs has no page for " << verb;
    for (const std::string& flag : flags_in(help_of(verb))) {
      EXPECT_TRUE(names(page, flag)) << flag << " of multihead " << verb << " is not in docs/verbs";
    }
  }
}

TEST(Help, WhatAllVerbsShareIsOnThePageOfAll) {
  const std::string page = page_of("README");
  for (const std::string& flag : flags_in(help_of("", "--help"))) EXPECT_TRUE(names(page, flag)) << flag;
  for (const std::string& verb : kVerbs) {
    const std::string name = verb.substr(0, verb.find(' '));
    EXPECT_THAT(page, HasSubstr("[" + name + "](" + name + ".md)"));
  }
}

// The other way round, in the tables of flags: a page names no flag that is gone.
TEST(Help, EveryFlagOfAPageExists) {
  std::set<std::string> known;
  for (const std::string& verb : kVerbs) known.merge(flags_in(help_of(verb)));
  known.merge(flags_in(help_of("", "--help")));
  for (const std::string& verb : kVerbs) {
    for (const std::string& line : lines_of(page_of(verb))) {
      if (!line.starts_with("| `")) continue;
      const std::string cell = line.substr(0, line.find(" | "));
      const std::regex flag("--[a-z0-9-]+");
      for (std::sregex_iterator found(cell.begin(), cell.end(), flag), end; found != end; ++found) {
        EXPECT_TRUE(known.contains(found->str())) << found->str() << " on the page of " << verb;
      }
    }
  }
}

TEST(SlowHelp, NumbersAreCheckedBeforeAnythingIsRead) {
  for (const std::string& verb : kVerbs) {
    const std::string help = help_of(verb);
    const std::set<std::string> fractions = flags_in(help, " +X\\b");
    for (const std::string& flag : flags_in(help, " +[NX]\\b")) {
      if (verb == "demo") continue;  // it has few, and says it in its own words
      for (const char* given : {"many", fractions.contains(flag) ? "nan" : "1.5"}) {
        const ToolResult result = run_tool(verb + " " + flag + "=" + given);
        expect_error(result, 2, flag + ": expected ");
        EXPECT_THAT(result.err, HasSubstr(std::string("got ") + given));
      }
    }
  }
}

TEST(Help, MistypedVerbsAndFlagsAreNamed) {
  expect_error(run_tool(""), 2, "no verb is given; multihead VERB is one of data, tokenize, train,");
  expect_error(run_tool("trainslate"), 2, "trainslate is no verb; did you mean translate?");
  expect_error(run_tool("translte"), 2, "translte is no verb; did you mean translate?");
  expect_error(run_tool("xyzzy"), 2, "xyzzy is no verb; multihead VERB is one of data,");
  expect_error(run_tool("data grammer"), 2, "grammer is no verb; did you mean grammar?");
  expect_error(run_tool("translate --beam-siez 3"), 2,
               "--beam-siez is no flag of multihead translate; did you mean --beam-size?");
  expect_error(run_tool("translate --beamsize=3"), 2, "did you mean --beam-size?");
  expect_error(run_tool("train --train-src a"), 2, "did you mean --train-source?");
  expect_error(run_tool("train --lr 1"), 2, "did you mean --learning-rate?");
  expect_error(run_tool("tokenize --vocab 100"), 2, "did you mean --vocabulary-size?");
  expect_error(run_tool("train --layers 3"), 2, "did you mean --encoder-layers or --decoder-layers?");
  expect_error(run_tool("train --xyzzy 3"), 2,
               "--xyzzy is no flag of multihead train; see multihead train --help-all");
  expect_error(run_tool("convert --model a"), 2, "--out is required; see multihead convert --help");
  expect_error(run_tool("info --json a b"), 2, "b is one argument too many; see multihead info --help");
  expect_error(run_tool("score --model a --model b"), 2, "--model is given more than once: a and b");
  expect_error(run_tool("translate v.en --model m"), 2, "--model is given more than once: v.en and m");
  // What follows from a mistyped flag is not the mistake: here its value becomes a model.
  for (const char* flags : {"--beamsize 3 --model m -i f", "m --beamsize 3", "v.en --beamsize 3 --model m",
                            "m v.en --beamsize 3", "--beamsize 3 --model m --alignment-layer 1"}) {
    expect_error(run_tool(std::string("translate ") + flags), 2,
                 "--beamsize is no flag of multihead translate; did you mean --beam-size?");
  }
  expect_error(run_tool("xyzzy --fast"), 2, "xyzzy is no verb");
  expect_error(run_tool("data grammar --seed -1"), 2,
               "--seed: expected an integer from 0 to 18446744073709551615, got -1");
}

}  // namespace
}  // namespace mh

// What every verb has: help with an example, a page that knows its flags, numbers that are checked.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kVerbs = {"bleu",     "convert", "data",   "data grammar", "demo",
                                         "heads",    "info",    "ledger", "score",        "study",
                                         "tokenize", "trace",   "train",  "translate"};

std::string help_of(const std::string& verb) {
  const ToolResult result = run_tool(verb + " --help");
  EXPECT_EQ(result.status, 0) << verb;
  EXPECT_EQ(result.err, "") << verb;
  return result.out;
}

std::string page_of(const std::string& verb) {
  const std::filesystem::path pages = std::filesystem::path(MULTIHEAD_SOURCE) / "docs/verbs";
  std::ifstream file(pages / (verb.substr(0, verb.find(' ')) + ".md"));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The flags that begin a line of help: "  -i,--input TEXT  ..." is --input.
std::set<std::string> flags_in(const std::string& help, const char* type = "") {
  std::set<std::string> flags;
  const std::regex flag(std::string("^ +(?:-[a-z], *)?(--[a-z0-9-]+)") + type);
  for (const std::string& line : lines_of(help)) {
    std::smatch found;
    if (std::regex_search(line, found, flag)) flags.insert(found[1]);
  }
  flags.erase("--help");
  return flags;
}

bool names(const std::string& page, const std::string& flag) {
  return std::regex_search(page, std::regex(flag + "(?![a-z0-9-])"));
}

TEST(Help, ListsTheVerbsThatAreTestedHere) {
  const std::string help = help_of("");
  const std::string list = help.substr(help.find("Subcommands:"));
  for (const std::string& line : lines_of(list)) {
    std::smatch found;
    if (!std::regex_search(line, found, std::regex("^  ([a-z]+)  "))) continue;
    EXPECT_NE(std::find(kVerbs.begin(), kVerbs.end(), found[1]), kVerbs.end()) << found[1];
  }
  for (const std::string& verb : kVerbs) EXPECT_THAT(list, HasSubstr(verb.substr(0, verb.find(' '))));
}

TEST(Help, HasAnExampleAndTheFlagsOfEveryVerb) {
  for (const std::string& verb : kVerbs) {
    const std::string help = help_of(verb);
    EXPECT_TRUE(std::regex_search(help, std::regex("Examples?:\n  .*multihead " + verb))) << verb;
    EXPECT_THAT(help, HasSubstr("--threads N")) << verb;
    EXPECT_THAT(help, HasSubstr("--quiet")) << verb;
  }
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
  for (const std::string& flag : flags_in(help_of(""))) EXPECT_TRUE(names(page, flag)) << flag;
  for (const std::string& verb : kVerbs) {
    const std::string name = verb.substr(0, verb.find(' '));
    EXPECT_THAT(page, HasSubstr("[" + name + "](" + name + ".md)"));
  }
}

// The other way round, in the tables of flags: a page names no flag that is gone.
TEST(Help, EveryFlagOfAPageExists) {
  std::set<std::string> known;
  for (const std::string& verb : kVerbs) known.merge(flags_in(help_of(verb)));
  known.merge(flags_in(help_of("")));
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
    const std::set<std::string> fractions = flags_in(help, " +FLOAT");
    for (const std::string& flag : flags_in(help, " +(?:INT|UINT|FLOAT)")) {
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
  expect_error(run_tool(""), 2, "no verb is given; multihead VERB is one of bleu, convert, data,");
  expect_error(run_tool("trainslate"), 2, "trainslate is no verb");
  expect_error(run_tool("data grammer"), 2, "grammer is no verb; multihead data VERB is one of grammar");
  expect_error(run_tool("translate --beam-siez 3"), 2,
               "--beam-siez is not known here; see multihead translate --help");
  expect_error(run_tool("score --model a"), 2, "--source is required; see multihead score --help");
  expect_error(run_tool("info --json a b"), 2, "b is not known here");
  expect_error(run_tool("score --model a --model b"), 2, "--model is given more than once");
  expect_error(run_tool("data grammar --seed -1"), 2,
               "--seed: expected an integer from 0 to 18446744073709551615, got -1");
}

}  // namespace
}  // namespace mh

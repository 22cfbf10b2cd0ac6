// Arguments without their flags: the error names the flag that was most likely meant.
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;

void expect_proposal(const std::string& command, const std::string& error) {
  SCOPED_TRACE(command);
  expect_error(run_tool(command), 2, "multihead: " + error + "\n");
}

TEST(StrayArguments, AreTextsWhereAVerbTakesText) {
  expect_proposal("generate x 'The sky is'",
                  "'The sky is' is one argument too many; did you mean --prompt 'The sky is'?");
  expect_proposal("heads minilm 'two dogs run .'",
                  "'two dogs run .' is one argument too many; did you mean --text 'two dogs run .'?");
  expect_proposal("fill bert 'a [MASK] .'",
                  "'a [MASK] .' is one argument too many; did you mean --text 'a [MASK] .'?");
  expect_proposal("trace m 'a b'", "'a b' is one argument too many; did you mean --text 'a b'?");
  expect_proposal("embed m 'a b' c", "'a b' is one argument too many; did you mean --similarity 'a b' c?");
  expect_proposal(
      "embed m 'a b'",
      "'a b' is one argument too many; text is read from a file, -i FILE, or from standard input");
  // Without quotes, before and behind the flag.
  expect_proposal("generate x The sky is",
                  "The is one argument too many; did you mean --prompt 'The sky is'?");
  expect_proposal("generate x --prompt The sky is",
                  "sky is one argument too many; did you mean --prompt 'The sky is'?");
  expect_proposal("heads m --text it\\'s so",
                  "so is one argument too many; did you mean --text 'it'\\''s so'?");
}

TEST(StrayArguments, AreFilesWhereAVerbReadsThem) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("v.en", "two dogs run .\n"),
                    mean = " is one argument too many; did you mean ";
  for (const char* verb :
       {"translate", "score", "embed", "generate", "fill", "classify", "heads", "tokenize"}) {
    expect_proposal(std::string(verb) + " m " + file, file + mean + "-i " + file + "?");
    expect_proposal(std::string(verb) + " --model m " + file, file + mean + "-i " + file + "?");
  }
  // Not there: a file or a word.
  expect_proposal("translate m v.en", "v.en" + mean + "-i v.en?");
  expect_proposal("heads m v.en", "v.en" + mean + "--text v.en or -i v.en?");
  expect_proposal("translate m two dogs",
                  "two is one argument too many; text is read from a file, -i FILE, or from standard input");
  // A flag that is given is not meant again.
  expect_proposal("translate m -i a " + file,
                  file + " is one argument too many; see multihead translate --help");
}

TEST(StrayArguments, AreFoldersWhereAVerbMakesThem) {
  const std::string mean = " is one argument too many; did you mean ";
  expect_proposal("convert m out", "out" + mean + "--out out?");
  expect_proposal("data grammar corpus", "corpus" + mean + "--out corpus?");
  expect_proposal("demo here", "here" + mean + "--out here?");
  expect_proposal("train en-de", "en-de" + mean + "--model en-de?");
}

TEST(StrayArguments, AreOneTooManyElsewhere) {
  expect_proposal("info m x", "x is one argument too many; see multihead info --help");
  expect_proposal("ledger m 'x y'", "'x y' is one argument too many; see multihead ledger --help");
  expect_error(run_tool("info -- m x"), 2, "x is one argument too many");
}

}  // namespace
}  // namespace mh

// multihead bleu: flags that would change nothing are refused.
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;

class BleuVerb : public testing::Test {
 protected:
  ToolResult run(const std::string& flags) const {
    return run_tool("bleu '" + reference + "' -i '" + system + "' " + flags);
  }
  ScratchFolder scratch;
  std::string reference = scratch.write("reference", "the small dog sees a cat\na cat runs away\n");
  std::string system = scratch.write("system", "the small dog sees a cat\na cat ran away\n");
};

TEST_F(BleuVerb, RefusesFlagsThatWouldChangeNothing) {
  expect_error(run("--language de"), 2, "--language needs --tokenize moses");
  expect_error(run("--language de --tokenize 13a"), 2, "--language needs --tokenize moses");
  EXPECT_EQ(run("--language de --tokenize moses").status, 0);
  expect_error(run("--smooth-value 0.2"), 2, "--smooth-value needs --smooth floor or --smooth add-k");
  expect_error(run("--smooth-value 0.2 --smooth none"), 2, "--smooth-value needs ");
  EXPECT_EQ(run("--smooth-value 0.2 --smooth floor").status, 0);
  expect_error(run("--json --score-only"), 2, "--score-only and --json cannot be given together");
  expect_error(run("--samples 20"), 2, "--samples needs --confidence or --paired");
  expect_error(run("--seed 20"), 2, "--seed needs --confidence or --paired");
  EXPECT_EQ(run("--samples 20 --confidence").status, 0);
}

TEST_F(BleuVerb, PrintsNamesThatAreSafeOnATerminal) {
  const std::string odd = scratch.write("a\x1b[31mb", "a dog sees a small cat\na cat runs\n");
  const ToolResult result = run("--paired '" + odd + "' --samples 20");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("a\\u001b[31mb"));
  EXPECT_THAT(result.out, testing::Not(HasSubstr("\x1b")));
}

TEST_F(BleuVerb, CountsLinesInWords) {
  const std::string one = scratch.write("one", "a cat\n");
  expect_error(run_tool("bleu '" + reference + "' -i '" + one + "'"), 1, "one has 1 line, ");
}

}  // namespace
}  // namespace mh

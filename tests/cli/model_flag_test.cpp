// The model folder is given by position or as --model MODEL, with the same result.
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ModelFlag : public SmallFolder {
 protected:
  void expect_both(const std::string& verb, const std::string& flags, const std::string& input = "") const {
    const std::string quoted = "'" + folder + "' ";
    const ToolResult by_position = run_tool(verb + " " + quoted + flags, input);
    const ToolResult by_flag = run_tool(verb + " --model " + quoted + flags, input);
    EXPECT_EQ(by_position.status, 0) << verb << ": " << by_position.err;
    EXPECT_EQ(by_flag.status, 0) << verb << ": " << by_flag.err;
    EXPECT_THAT(by_position.out, Not(IsEmpty())) << verb;
    EXPECT_EQ(by_position.out, by_flag.out) << verb;
    expect_error(run_tool(verb + " " + quoted + "--model " + quoted + flags, input), 2,
                 "--model is given more than once");
  }
};

TEST_F(ModelFlag, IsTakenByPositionOrByName) {
  expect_both("info", "");
  expect_both("tokenize", "--ids", "the dog\n");
  expect_both("ledger", "--tokens 5");
  expect_both("trace", "--text 'a cat runs'");
}

TEST_F(ModelFlag, IsAskedForWhenItIsMissing) {
  expect_error(run_tool("info"), 2,
               "the model folder is missing; give it as multihead info MODEL or --model MODEL");
  EXPECT_THAT(run_tool("info --help").out, HasSubstr("--model"));
}

}  // namespace
}  // namespace mh

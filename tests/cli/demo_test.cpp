// The demonstration's last words: commands that work when they are pasted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_tool.h"
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// The indented lines at the end.
std::vector<std::string> hints_of(const std::string& output) {
  const size_t at = output.find("Go on with\n");
  EXPECT_NE(at, std::string::npos) << output;
  return at == std::string::npos ? std::vector<std::string>() : lines_of(output.substr(at + 11));
}

TEST(SlowDemoVerb, ItsHintsWorkWhenPasted) {
  const ScratchFolder scratch;
  const std::string in_scratch = "cd '" + scratch.path().string() + "' && ";
  const ToolResult demo = run_shell(in_scratch + "\"$MULTIHEAD\" demo --updates 1 --out 'my demo' --quiet");
  ASSERT_EQ(demo.status, 0) << demo.err;
  EXPECT_THAT(demo.out, HasSubstr("open my demo/heads.html in a browser"));
  EXPECT_THAT(scratch.read("my demo/heads.html"), HasSubstr("<!doctype html>"));
  const auto hints = hints_of(demo.out);
  ASSERT_THAT(hints, SizeIs(3));
  for (const std::string& hint : hints) {
    EXPECT_THAT(hint, HasSubstr("'my demo/model'"));
    const ToolResult pasted = run_shell(in_scratch + hint);
    EXPECT_EQ(pasted.status, 0) << hint << "\n" << pasted.err;
  }

  // Found in PATH it is called by its name; another program of that name is not it.
  const std::string demo_again = "multihead demo --updates 1 --out 'my demo' --quiet";
  const std::string found =
      run_shell(in_scratch + "ln -s \"$MULTIHEAD\" multihead && PATH=\"$PWD:$PATH\" && " + demo_again).out;
  EXPECT_THAT(hints_of(found).at(1), HasSubstr("  multihead heads "));
  const std::string other =
      run_shell(in_scratch +
                "rm multihead && printf '#!/bin/sh\\nexit 3\\n' >multihead && chmod +x multihead && "
                "PATH=\"$PWD:$PATH\" && \"$MULTIHEAD\" " +
                demo_again.substr(10))
          .out;
  EXPECT_THAT(hints_of(other).at(1), Not(HasSubstr("  multihead heads ")));
}

}  // namespace
}  // namespace mh

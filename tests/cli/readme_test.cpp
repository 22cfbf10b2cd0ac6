// The commands and outputs in the README are what the project really does.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/cli/run_tool.h"

namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string readme() {
  return contents(fs::path(MULTIHEAD_SOURCE) / "README.md");
}

// The first code block behind a heading.
std::string block_behind(const std::string& heading) {
  const std::string text = readme();
  const size_t at = text.find(heading), open = text.find("```", at);
  const size_t begin = text.find('\n', open) + 1, end = text.find("```", begin);
  EXPECT_TRUE(at != std::string::npos && end != std::string::npos) << heading;
  return text.substr(begin, end - begin);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Readme, ShowsTheExampleThatIsBuilt) {
  EXPECT_EQ(block_behind("## A first program"),
            contents(fs::path(MULTIHEAD_SOURCE) / "examples/translate_one.cpp"));
}

TEST(Readme, PointsToWhatIsThere) {
  const std::string text = readme();
  size_t links = 0;
  for (size_t at = 0; (at = text.find("](", at)) != std::string::npos; ++links) {
    const size_t end = text.find(')', at);
    const std::string target = text.substr(at + 2, end - at - 2);
    EXPECT_TRUE(fs::exists(fs::path(MULTIHEAD_SOURCE) / target)) << target;
    at = end;
  }
  EXPECT_GT(links, 5u);
}

// The commands of "Your own data", letter by letter but for the number of updates, and the example behind
// them.
TEST(SlowReadme, CommandsRunOnOnesOwnData) {
  const mh::ScratchFolder folder;
  const std::string tools = fs::path(MULTIHEAD_BINARY).parent_path();
  const std::string set_up = "set -e; cd " + (folder / "") + "; export PATH=" + tools + ":$PATH; ";
  const std::string corpus =
      "multihead --quiet data grammar --out corpus --train 300 --valid 20 --test 20 --compositional 20; "
      "mv corpus/*.en corpus/*.de .; ";
  const std::string commands = replaced(block_behind("## Your own data"), "--updates 8000", "--updates 12");
  const std::string example = tools + "/examples/translate_one en-de \"$(head -n 1 test.en)\"";
  const std::string logged = " > " + (folder / "log") + " 2>&1";
  EXPECT_EQ(std::system(("bash -c '" + set_up + corpus + commands + "'" + logged).c_str()), 0)
      << folder.read("log");
  EXPECT_EQ(std::system(("bash -c '" + set_up + example + "'" + logged).c_str()), 0) << folder.read("log");
  EXPECT_TRUE(fs::exists(folder / "test.out"));
  EXPECT_TRUE(fs::exists(folder / "muted.out"));
}

}  // namespace

// The commands and outputs in the README are what the project really does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "multihead/base/file.h"
#include "tests/cli/run_tool.h"
#include "tests/support/places.h"

namespace {

namespace fs = std::filesystem;

std::string readme() {
  return mh::read_file(fs::path(mh::source_folder()) / "README.md");
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
            mh::read_file(fs::path(mh::source_folder()) / "examples/translate_sentence.cpp"));
}

TEST(Readme, PointsToWhatIsThere) {
  const std::string text = readme();
  size_t links = 0;
  for (size_t at = 0; (at = text.find("](", at)) != std::string::npos; ++links) {
    const size_t end = text.find(')', at);
    const std::string target = text.substr(at + 2, end - at - 2);
    EXPECT_TRUE(fs::exists(fs::path(mh::source_folder()) / target)) << target;
    at = end;
  }
  EXPECT_GT(links, 5u);
}

// The commands of "Your own two files", letter by letter but for the number of updates, and the program behind them.
TEST(SlowReadme, CommandsRunOnOnesOwnText) {
  const mh::ScratchFolder folder;
  const std::string tools = fs::path(mh::tool_file()).parent_path();
  std::ofstream script(folder / "script");
  script
      << "set -e\ncd " << folder / ""
      << "\nexport PATH=" << tools << ":$PATH\n"
      << "multihead --quiet data grammar --out corpus --train 300 --valid 20 --test 20 --compositional 20\n"
      << "mv corpus/*.en corpus/*.de .\n"
      << replaced(block_behind("Then, in the folder of your text"), "--updates 8000", "--updates 12")
      << "echo the text is read\n"
      << tools << "/examples/translate_sentence en-de \"$(head -n 1 test.en)\"\n";
  script.close();
  const std::string run = "bash " + (folder / "script") + " </dev/null >" + (folder / "log") + " 2>&1";
  ASSERT_EQ(std::system(run.c_str()), 0) << folder.read("log");
  const std::string log = folder.read("log");
  EXPECT_THAT(log, testing::HasSubstr("BLEU"));
  EXPECT_THAT(log, testing::HasSubstr("translations changed"));
  EXPECT_THAT(log, testing::HasSubstr("log-probability"));
  EXPECT_TRUE(fs::exists(folder / "test.out"));
  EXPECT_TRUE(fs::exists(folder / "heads.svg"));
}

// The commands of "Models of others", letter by letter.
TEST(SlowReadme, CommandsRunOnModelsOfOthers) {
  const char* models = std::getenv("MULTIHEAD_MODELS");
  if (models == nullptr) GTEST_SKIP() << "no MULTIHEAD_MODELS; scripts/models fetches them";
  const mh::ScratchFolder folder;
  std::ofstream script(folder / "script");
  script << "set -e\ncd " << folder / ""
         << "\nexport PATH=" << fs::path(mh::tool_file()).parent_path().string() << ":$PATH\n"
         << "ln -s " << models << "/minilm " << models << "/smollm2.gguf .\n"
         << "multihead --quiet data grammar --out corpus --train 7 --valid 2 --test 20 --compositional 2\n"
         << "mv corpus/test.en corpus/test.en.conllu .\n"
         << block_behind("## Models of others");
  script.close();
  const std::string run = "bash " + (folder / "script") + " </dev/null >" + (folder / "log") + " 2>&1";
  ASSERT_EQ(std::system(run.c_str()), 0) << folder.read("log");
  EXPECT_THAT(folder.read("log"), testing::HasSubstr("encoder.0.self_attention"));
  EXPECT_TRUE(fs::exists(folder / "test.npy"));
  EXPECT_TRUE(fs::exists(folder / "smollm2/model.safetensors"));
}

// On the trees that README's command is meant for, the head that goes from verbs to their objects comes first.
TEST(SlowReadme, RelationsNameTheHeadFromVerbsToObjects) {
  const char *models = std::getenv("MULTIHEAD_MODELS"), *data = std::getenv("MULTIHEAD_DATA");
  if (models == nullptr || data == nullptr) GTEST_SKIP() << "no MULTIHEAD_MODELS or no MULTIHEAD_DATA";
  const mh::ToolResult result =
      mh::run_tool("heads relations '" + std::string(models) + "/minilm' --conllu '" + data +
                   "/ud-ewt/en_ewt-ud-dev.conllu.gz' --relation obj --top 1");
  ASSERT_EQ(result.status, 0) << result.err;
  const size_t table = result.out.find("obj: words that attend most to a dependent of this relation");
  ASSERT_NE(table, std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("encoder.3.self_attention.1 ", table), result.out.find("encoder.", table))
      << result.out;
}

// The ranking that README shows.
TEST(SlowReadme, ImportanceRanksTheHeadsAsShown) {
  const char *models = std::getenv("MULTIHEAD_MODELS"), *data = std::getenv("MULTIHEAD_DATA");
  if (models == nullptr || data == nullptr) GTEST_SKIP() << "no MULTIHEAD_MODELS or no MULTIHEAD_DATA";
  const mh::ToolResult result =
      mh::run_tool("heads importance '" + std::string(models) + "/minilm' --conllu '" + data +
                   "/ud-ewt/en_ewt-ud-dev.conllu.gz' --top 5");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr(block_behind("ranks the 72 heads of MiniLM")));
}

}  // namespace

// Where results go: one rule for files and one for folders, looked at before the work begins; and what is read
// that is no file.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/cli/run_tool.h"

namespace mh {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Places, AFolderThatCannotBeMadeIsRefusedBeforeTheWork) {
  // So many sentences there are not: with the work first, that would be the error.
  const ToolResult data = run_tool("data grammar --out /proc/corpus --test 2000000 --max-words 5");
  EXPECT_EQ(data.status, 1);
  EXPECT_THAT(data.err, HasSubstr("/proc/corpus"));
  const ToolResult convert = run_tool("convert /no/model --out /proc/model --to merged");
  EXPECT_EQ(convert.status, 1);
  EXPECT_THAT(convert.err, HasSubstr("/proc/model"));
  const ToolResult train =
      run_tool("train --model /proc/model --train-source /no/text --train-target /no/text --updates 1");
  EXPECT_EQ(train.status, 1);
  EXPECT_THAT(train.err, HasSubstr("/proc/model"));
}

TEST(Places, FoldersAboveAFolderAreMadeAndThoseAboveAFileMustBeThere) {
  const ScratchFolder folder;
  const ToolResult data = run_tool("data grammar --train 3 --valid 0 --test 0 --compositional 0 --out '" +
                                   folder / "deep/er/corpus'");
  EXPECT_EQ(data.status, 0) << data.err;
  EXPECT_TRUE(fs::exists(folder / "deep/er/corpus/train.en"));
  const ToolResult file =
      run_tool("tokenize --train '" + folder / "deep/er/corpus/train.en' --output-tokenizer '" +
               folder / "none/tokenizer.json'");
  EXPECT_EQ(file.status, 1);
  EXPECT_THAT(file.err, HasSubstr("make the folder first"));
}

TEST(Places, NumbersOfTheCorpusSayTheirTrueRange) {
  for (const auto& [flags, range] :
       {std::pair{"--depth 2147483648", "an integer from 0 to 5, got 2147483648"},
        {"--depth 6", "an integer from 0 to 5, got 6"},
        {"--max-words 4", "an integer from 5 to 200, got 4"},
        {"--train 2000001", "an integer from 0 to 2000000, got 2000001"},
        {"--test -1", "an integer from 0 to 2000000, got -1"}}) {
    const ToolResult result = run_tool(std::string("data grammar --out /proc/corpus ") + flags);
    EXPECT_EQ(result.status, 2) << flags;
    EXPECT_THAT(result.err, HasSubstr(range));
  }
}

TEST(Places, PipesAndDevicesInAModelFolderAreRefusedAndPipesOfTextAreRead) {
  const ScratchFolder folder;
  fs::create_directories(folder / "model");
  ASSERT_EQ(::mkfifo((folder / "model/config.json").c_str(), 0600), 0);
  folder.write("model/model.safetensors", "x");
  const ToolResult pipe = run_tool("info '" + folder / "model'");
  EXPECT_EQ(pipe.status, 1);
  EXPECT_THAT(pipe.err, HasSubstr("config.json: not a regular file"));
  fs::remove(folder / "model/config.json");
  fs::create_symlink("/dev/zero", folder / "model/config.json");
  EXPECT_THAT(run_tool("info '" + folder / "model'").err, HasSubstr("config.json: not a regular file"));
  EXPECT_THAT(run_tool("train --config /dev/zero --dump-config").err,
              HasSubstr("it is a device, not a regular file"));

  folder.write("text.en", "the dog\n");
  const ToolResult text =
      run_shell("bash -c '\"$0\" bleu -i <(cat " + folder / "text.en) " + folder / "text.en' \"$MULTIHEAD\"");
  EXPECT_EQ(text.status, 0) << text.err;
  const ToolResult config =
      run_shell(R"(bash -c '"$0" train --config <(echo "{\"seed\": 9}") --dump-config' "$MULTIHEAD")");
  EXPECT_EQ(config.status, 0) << config.err;
  EXPECT_THAT(config.out, HasSubstr("\"seed\": 9"));
}

}  // namespace
}  // namespace mh

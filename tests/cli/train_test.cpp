// multihead train: bad input, and what a config file holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/models/model_folder.h"
#include "tests/cli/training.h"

namespace mh {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Train, RefusesBadInputInOneLine) {
  const ScratchFolder folder;
  write_text(folder);
  std::ofstream(folder / "short.de") << "hund\n";
  std::ofstream(folder / "empty.en");
  std::ofstream(folder / "latin1.en") << "ok\n\xe4\n";
  std::ofstream(folder / "a_file") << "x";
  fs::create_directories(folder / "foreign");
  std::ofstream(folder / "foreign/config.json") << "{}";
  struct Case {
    std::vector<std::string> flags;
    int status;
    const char* message;
  };
  const std::vector<Case> cases = {
      {{"--train-target", folder / "short.de"}, 1, "200 lines"},
      {{"--train-source", folder / "empty.en"}, 1, "is empty"},
      {{"--train-source", folder / "latin1.en"}, 1, "latin1.en"},
      {{"--train-source", folder / "missing.en"}, 1, "missing.en"},
      {{"--model", folder / "a_file"}, 1, "is a file"},
      {{"--model", "/proc/no/such"}, 1, "/proc/no/such"},
      {{"--model", folder / "foreign"}, 2, "--init-from"},
      {{"--dropout", "1.5"}, 2, "--dropout"},
      {{"--dropout", "abc"}, 2, "--dropout"},
      {{"--heads", "0"}, 2, "--heads"},
      {{"--heads", "5"}, 2, "--heads 5 does not divide --d-model 16"},
      {{"--d-model", "65536", "--encoder-layers", "512"}, 2, "GiB of memory, this machine has"},
      {{"--norm", "middle"}, 2, "--norm"},
      {{"--preset", "huge"}, 2, "huge"},
      {{"--no-such-flag"}, 2, "--no-such-flag"},
      {{"--max-length", "2"}, 2, "--max-length"},
      {{"--tokenizer", folder / "train.en"}, 1, "train.en"},
      {{"--init-from", folder / "foreign"}, 1, "foreign"},
      {{"--config", folder / "foreign/none.json"}, 1, "none.json"},
  };
  for (const Case& bad : cases) {
    const Outcome outcome = tool(train_command(folder, "m", bad.flags));
    EXPECT_EQ(outcome.status, bad.status) << bad.flags[0] << ": " << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr(bad.message));
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  }
}

TEST(Train, ConfigFilesHoldWhatFlagsHold) {
  const ScratchFolder folder;
  const Outcome first =
      tool({"train", "--preset", "small", "--seed", "5", "--norm", "pre", "--lowercase", "--dump-config"});
  ASSERT_EQ(first.status, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr("\"d-model\": 256"));
  std::ofstream(folder / "run.json") << first.output;
  const Outcome second = tool({"train", "--config", folder / "run.json", "--seed", "6", "--dump-config"});
  ASSERT_EQ(second.status, 0) << second.errors;
  EXPECT_THAT(second.output, HasSubstr("\"seed\": 6"));
  EXPECT_THAT(second.output, HasSubstr("\"norm\": \"pre\""));
  EXPECT_THAT(second.output, HasSubstr("\"lowercase\": true"));
  const Outcome help = tool({"train", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, HasSubstr("Example:"));
  std::ofstream(folder / "typo.json") << "{\"sed\": 1}";
  const Outcome typo = tool({"train", "--config", folder / "typo.json", "--dump-config"});
  EXPECT_EQ(typo.status, 1);
  EXPECT_THAT(typo.errors, HasSubstr("sed"));
}

}  // namespace
}  // namespace mh
